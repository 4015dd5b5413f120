//! Bugs on purpose. With the feature `planted-bugs` (never in a release) the environment variable
//! `ONCESEAL_PLANTED_BUG` switches one of them on, to prove that the crash, race, fault and simulation
//! runs catch it.

/// Whether the named bug is switched on. Always `false` without the feature.
#[must_use]
pub fn is(name: &str) -> bool {
    #[cfg(feature = "planted-bugs")]
    {
        static NAME: std::sync::LazyLock<Option<String>> =
            std::sync::LazyLock::new(|| std::env::var("ONCESEAL_PLANTED_BUG").ok());
        NAME.as_deref() == Some(name)
    }
    #[cfg(not(feature = "planted-bugs"))]
    {
        let _ = name;
        false
    }
}
