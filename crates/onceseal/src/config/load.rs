//! From places to settings.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::fault::Fault;
use super::layer::{Hint, Layers};
use super::limit;
use super::settings::Config;

/// Where the file is looked for when none is named, in this order.
pub const FILES: [&str; 2] = ["onceseal.toml", "/etc/onceseal/onceseal.toml"];

/// What the command line says about the configuration.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `--config`
    pub file: Option<PathBuf>,
    /// Flags in their order: which one, and `section.key=value`.
    pub flags: Vec<(&'static str, String)>,
    /// Whether variables `ONCESEAL_SECTION__KEY` count.
    pub environment: Environment,
}

/// Whether the environment counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Environment {
    /// It does.
    #[default]
    Read,
    /// It doesn't: the demo is the same everywhere.
    Ignored,
}

/// A configuration that can be used.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The effective values.
    pub config: Config,
    /// Where each came from.
    pub layers: Layers,
    /// The file, when there is one.
    pub file: Option<PathBuf>,
    /// Names of the sources in the file's order.
    pub order: Vec<String>,
}

impl Places {
    /// Reads file, environment and flags, and checks the limits. Secrets are not read here.
    ///
    /// # Errors
    /// [`Fault`] names the setting or the file.
    pub fn load(&self) -> Result<Loaded, Fault> {
        let hints = hints();
        let hint = |path: &str| text_at(&hints, path);
        let mut layers = Layers::default();
        let file = self.file.clone().or_else(found);
        if let Some(path) = &file {
            layers.file(read(path)?);
        }
        let variables = std::env::vars_os()
            .filter_map(|(name, text)| Some((name.into_string().ok()?, text.into_string().ok()?)));
        if self.environment == Environment::Read {
            layers.environment(variables, hint);
        }
        for (flag, setting) in &self.flags {
            layers.flag(flag, setting, hint).map_err(Fault::new)?;
        }
        let config: Config = layers.table.clone().try_into().map_err(|cause| Fault::of(&cause))?;
        limit::check(&config).map_err(Fault::new)?;
        let order = match layers.table.get("sources") {
            Some(Value::Table(sources)) => sources.keys().cloned().collect(),
            _ => Vec::new(),
        };
        Ok(Loaded { config, layers, file, order })
    }
}

fn found() -> Option<PathBuf> {
    FILES.iter().map(PathBuf::from).find(|path| path.is_file())
}

fn read(path: &Path) -> Result<Table, Fault> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|cause| Fault::new(format!("configuration file {shown}: {cause}")))?;
    text.parse()
        .map_err(|cause| Fault::new(format!("configuration file {shown}: {}", Fault::syntax(&text, &cause))))
}

/// The defaults as a table: they tell which settings are texts.
fn hints() -> Table {
    Table::try_from(Config::default()).unwrap_or_default()
}

fn text_at(hints: &Table, path: &str) -> Hint {
    let mut keys = path.split('.');
    let first = keys.next().and_then(|key| hints.get(key));
    match keys.fold(first, |at, key| at.and_then(|at| at.get(key))) {
        Some(Value::String(_)) => Hint::Text,
        _ => Hint::Any,
    }
}
