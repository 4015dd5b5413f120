//! Log lines on standard error. A level without a crate's name goes to our own crates; libraries stay at
//! `info` unless a filter names them, because at `trace` some of them print what they send. Where the supply side is on,
//! every line passes its guard ([`guarded`]).

pub mod guarded;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::config::Config;
use crate::config::settings::{Log, LogFormat};

/// Our own crates: a bare level is theirs.
const OURS: [&str; 8] = ["certify", "door", "kernel", "onceseal", "relay", "source", "store", "web"];

/// What was started. Traces that wait are sent by [`Started::end`]; log lines wait for nothing.
#[derive(Debug, Default)]
pub struct Started {
    #[cfg(feature = "otel")]
    exporter: Option<crate::telemetry::Exporter>,
}

impl Started {
    /// Sends what waits.
    pub async fn end(self) {
        #[cfg(feature = "otel")]
        if let Some(exporter) = self.exporter {
            exporter.end().await;
        }
    }
}

/// Starts logging, and traces where `telemetry.endpoint` asks for them. `RUST_LOG` replaces `log.level`. A
/// second call changes nothing.
///
/// # Errors
/// The level is no filter, or the collector's address can't be used.
pub fn start(config: &Config) -> Result<Started, String> {
    let filter = check(&config.log)?;
    #[cfg(feature = "otel")]
    if let Some(endpoint) = &config.telemetry.endpoint {
        return traced(config.log.format, filter, endpoint);
    }
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_span_events(FmtSpan::NONE)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(guarded::Guarded);
    let started = match config.log.format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).try_init(),
        LogFormat::Text => lines.try_init(),
    };
    // Already started: a command that runs a server inside another.
    drop(started);
    Ok(Started::default())
}

/// The same lines, and beside them traces. The level is the lines' alone: at `warn` there are still traces.
#[cfg(feature = "otel")]
fn traced(format: LogFormat, filter: EnvFilter, endpoint: &str) -> Result<Started, String> {
    use tracing_subscriber::Layer as _;
    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::util::SubscriberInitExt as _;
    let exporter = crate::telemetry::Exporter::new(endpoint)?;
    let lines = tracing_subscriber::fmt::layer()
        .with_span_events(FmtSpan::NONE)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .with_writer(guarded::Guarded);
    let lines = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).boxed(),
        LogFormat::Text => lines.boxed(),
    };
    let both = tracing_subscriber::registry().with(lines.with_filter(filter)).with(exporter.layer(&OURS));
    Ok(Started { exporter: both.try_init().is_ok().then_some(exporter) })
}

/// The filter that the setting or `RUST_LOG` asks for.
///
/// # Errors
/// The level is no filter.
pub fn check(log: &Log) -> Result<EnvFilter, String> {
    let variable = std::env::var("RUST_LOG").ok().filter(|text| !text.trim().is_empty());
    let level = variable.as_deref().unwrap_or(&log.level);
    EnvFilter::try_new(directives(level)).map_err(|_| {
        format!(
            "log.level is {level:?}; use error, warn, info, debug, trace or a filter such as \"info,certify=debug\""
        )
    })
}

/// The filter's text with bare levels above `info` narrowed to our crates.
fn directives(level: &str) -> String {
    let narrowed = level.split(',').map(|part| {
        let part = part.trim();
        match part.to_ascii_lowercase().as_str() {
            bare @ ("debug" | "trace") => {
                let ours: Vec<String> = OURS.iter().map(|name| format!("{name}={bare}")).collect();
                format!("info,{}", ours.join(","))
            }
            _ => part.to_owned(),
        }
    });
    narrowed.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_level_is_ours_and_a_named_one_is_kept() {
        assert!(directives("trace").starts_with("info,certify=trace,"));
        assert_eq!(directives("warn, hyper=trace"), "warn,hyper=trace");
        assert!(EnvFilter::try_new(directives("DEBUG")).is_ok());
    }
}
