//! The schema, file by file: registered by name and checksum, each in one transaction, in a fixed
//! order inside its chain (supply specification, section 10). What differs by engine is a token in the
//! file (`dialect`); how a file is applied is the driver's.

use kernel::Time;
use sha2::{Digest as _, Sha256};

use crate::error::Error;

/// Registered where nothing may be written any more: the database moves elsewhere. No program knows a file
/// of this name, so none starts.
pub const FENCED: &str = "fenced_for_copy";
/// Registered while a copy into the database is unfinished. Programs that serve don't know the file, so
/// none starts.
pub const COPYING: &str = "copy_unfinished";

/// One schema file.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Registered name; never changes once released.
    pub name: &'static str,
    /// Text with tokens; never changes once released.
    pub sql: &'static str,
    /// What a program that does not know the file may do with a database that has it.
    pub older: Older,
    /// Name of the file that must have been applied before, of this chain or of another one.
    pub needs: Option<&'static str>,
}

/// What an older program may do with a newer schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Older {
    /// Go on: the file only adds what an older program never looks at (new tables, indexes, columns with
    /// a default). Servers of both versions may run side by side.
    MayServe,
    /// Not start: the file changes what an older program relies on.
    MustStop,
}

impl File {
    /// A file that older programs may not run with.
    #[must_use]
    pub const fn new(name: &'static str, sql: &'static str) -> Self {
        Self { name, sql, older: Older::MustStop, needs: None }
    }

    /// A file that only adds to what the file `needs` made; older programs may run with it.
    #[must_use]
    pub const fn adding(name: &'static str, sql: &'static str, needs: &'static str) -> Self {
        Self { name, sql, older: Older::MayServe, needs: Some(needs) }
    }

    /// SHA-256 of the text, in hex.
    #[must_use]
    pub fn checksum(&self) -> String {
        hex::encode(Sha256::digest(self.sql.as_bytes()))
    }
}

/// A file that a database has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registered {
    /// Its name.
    pub name: String,
    /// Its text's SHA-256, in hex.
    pub checksum: String,
    /// What a program that does not know it may do.
    pub older: Older,
    /// When it was applied.
    pub applied_at: Time,
}

/// How a file stands in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As this program has it.
    Applied,
    /// Not there yet.
    Missing,
    /// There, with another text.
    Changed,
    /// There, and not known to this program.
    Unknown,
}

/// A file and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its chain; none for a file that this program doesn't know.
    pub chain: Option<&'static str>,
    /// Its name.
    pub name: String,
    /// SHA-256 of the text: as this program has it, else as registered.
    pub checksum: String,
    /// How it stands.
    pub state: State,
    /// When it was applied.
    pub applied_at: Option<Time>,
    /// What a program that does not know it may do.
    pub older: Older,
}

/// Files in their order. A file runs only when those before it are registered.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    /// For messages.
    pub name: &'static str,
    /// In order.
    pub files: &'static [File],
}

/// Tenants, users, tokens, billing, audit and outbox: the ground of both domains.
pub const CORE: Chain = Chain {
    name: "core",
    files: &[File::new("platform_core_schema_v1", include_str!("../sql/platform_core_schema_v1.sql"))],
};

/// Events, arrivals and certificates; needs [`CORE`].
pub const CERTIFY: Chain = Chain {
    name: "certify",
    files: &[File::new("certify_schema_v1", include_str!("../sql/certify_schema_v1.sql"))],
};

/// Suppliers, packages, orders, earnings and settlements, in the order that the supply specification fixes
/// (section 10; [`CORE`] is its first file), and then what runs beyond it.
pub const SUPPLY: Chain = Chain {
    name: "supply",
    files: &[
        File::adding(
            "supply_schema_v1",
            include_str!("../sql/supply_schema_v1.sql"),
            "platform_core_schema_v1",
        ),
        File::adding(
            "supply_schema_v1_patch_2026-03-27",
            include_str!("../sql/supply_schema_v1_patch_2026-03-27.sql"),
            "supply_schema_v1",
        ),
        File::adding(
            "supply_runtime_schema_v1",
            include_str!("../sql/supply_runtime_schema_v1.sql"),
            "supply_schema_v1_patch_2026-03-27",
        ),
    ],
};

/// Files of `chains` that a database with `registered` still needs, in order.
///
/// # Errors
/// [`Error::Setup`] when a registered file has another checksum, a file is missing before a registered
/// one, a file would come before the one that it needs, or the database has a file that this program
/// doesn't know and may not run with.
pub fn missing(chains: &[Chain], mut registered: Vec<Registered>) -> Result<Vec<File>, Error> {
    let mut missing = Vec::new();
    let mut applied: Vec<String> = registered.iter().map(|kept| kept.name.clone()).collect();
    for chain in chains {
        let mut gap: Option<&str> = None;
        for file in chain.files {
            let at = registered.iter().position(|kept| kept.name == file.name);
            match (at.map(|at| registered.swap_remove(at)), gap) {
                (Some(kept), _) if kept.checksum != file.checksum() => return Err(changed(file.name)),
                (Some(_), Some(before)) => return Err(out_of_order(file.name, before)),
                (Some(_), None) => {}
                (None, _) => {
                    if let Some(needs) = file.needs.filter(|needs| !applied.iter().any(|name| name == needs))
                    {
                        return Err(too_early(file.name, needs));
                    }
                    gap = gap.or(Some(file.name));
                    applied.push(file.name.to_owned());
                    missing.push(*file);
                }
            }
        }
    }
    let unknown = registered.iter().find(|kept| kept.older == Older::MustStop);
    unknown.map_or(Ok(missing), |kept| Err(unknown_file(&kept.name)))
}

fn unknown_file(name: &str) -> Error {
    Error::Setup(match name {
        FENCED => "this installation is fenced since `onceseal copy`: nothing is written here any more; serve the copy (storage.database), or lift the fence with `onceseal copy --unfence`".to_owned(),
        COPYING => "the copy into this database is not finished; run `onceseal copy` again, or drop the database".to_owned(),
        newer => format!(
            "the database is newer than this program: it has the schema file {newer:?}; use the newer program"
        ),
    })
}

/// All files of `chains` in order, then what else is registered. Judges nothing: [`missing`] does.
#[must_use]
pub fn steps(chains: &[Chain], mut registered: Vec<Registered>) -> Vec<Step> {
    let mut steps = Vec::new();
    for chain in chains {
        for file in chain.files {
            let at = registered.iter().position(|kept| kept.name == file.name);
            let kept = at.map(|at| registered.swap_remove(at));
            let checksum = file.checksum();
            let state = match &kept {
                None => State::Missing,
                Some(kept) if kept.checksum == checksum => State::Applied,
                Some(_) => State::Changed,
            };
            steps.push(Step {
                chain: Some(chain.name),
                name: file.name.to_owned(),
                checksum,
                state,
                applied_at: kept.map(|kept| kept.applied_at),
                older: file.older,
            });
        }
    }
    registered.sort_by(|one, other| (one.applied_at, &one.name).cmp(&(other.applied_at, &other.name)));
    steps.extend(registered.into_iter().map(|kept| Step {
        chain: None,
        name: kept.name,
        checksum: kept.checksum,
        state: State::Unknown,
        applied_at: Some(kept.applied_at),
        older: kept.older,
    }));
    steps
}

pub(crate) fn failed(name: &str, cause: &str) -> Error {
    Error::Setup(format!("the schema file {name} could not be applied: {cause}; nothing of it was kept"))
}

fn changed(name: &str) -> Error {
    Error::Setup(format!(
        "the schema file {name} was applied in another version than this program has; use the program that made this database"
    ))
}

fn too_early(name: &str, needs: &str) -> Error {
    Error::Setup(format!(
        "the schema file {name} can't be applied before {needs}; apply the files in their order"
    ))
}

fn out_of_order(name: &str, missing: &str) -> Error {
    Error::Setup(format!(
        "the schema file {name} is applied but {missing} before it is not; restore the database from a backup"
    ))
}
