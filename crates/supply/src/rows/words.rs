//! Closed sets of words, as columns hold them.

/// An enum whose variants are a column's words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $column:literal { $($(#[$each:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The stored word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// From a stored or sent word.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }

            pub(crate) fn read(word: &str) -> Result<Self, store::Error> {
                Self::parse(word)
                    .ok_or_else(|| store::Error::Corrupt { table: "supply", column: $column.into() })
            }
        }
    };
}

pub(crate) use words;
