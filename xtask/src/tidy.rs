//! Rules of the house that no compiler knows: who may write, how long a file may be, which words and
//! papers don't belong in the tree.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Longest source file, in lines; a table of data may be longer and is named here with its reason.
const LINES_MAX: usize = 450;
const TABLES: [&str; 0] = [];
/// Texts that must not stand in source, with what to do instead. A rule's own words are joined here, so
/// that this file does not break it.
const BANNED: [(&str, &str, &str); 6] = [
    ("#[ign", "ore", "assert today's behaviour instead of skipping a test"),
    ("todo", "!(", "finish it, or leave it out and say so in the docs"),
    ("unimpl", "emented!(", "finish it, or leave it out and say so in the docs"),
    ("FIX", "ME", "fix it"),
    ("/work", "/", "no path of a machine"),
    ("thread::sl", "eep(", "wait for the condition, not for the time"),
];
/// Folders that are not ours to judge.
const SKIPPED: [&str; 5] = ["target", ".git", "vectors", "corpus", "artifacts"];

/// Checks the whole tree.
///
/// # Errors
/// All findings at once, each with its place.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the project's folder")?;
    let mut files = Vec::new();
    collect(root, &mut files)?;
    let mut findings = Vec::new();
    for file in &files {
        let name = file.strip_prefix(root)?.to_string_lossy().into_owned();
        let Ok(text) = std::fs::read_to_string(file) else { continue };
        judge(&name, &text, &mut findings);
    }
    if findings.is_empty() {
        eprintln!("== tidy: green, {} files", files.len());
        return Ok(());
    }
    bail!("tidy is not green:\n{}", findings.join("\n"))
}

fn judge(name: &str, text: &str, findings: &mut Vec<String>) {
    let rust = has_extension(name, "rs");
    if rust && text.lines().count() > LINES_MAX && !TABLES.contains(&name) {
        findings
            .push(format!("{name}: {} lines; split it by subject (limit {LINES_MAX})", text.lines().count()));
    }
    for (start, end, advice) in BANNED {
        let word = format!("{start}{end}");
        if let Some(line) = text.lines().position(|line| line.contains(&word)) {
            findings.push(format!("{name}:{}: {word:?}: {advice}", line + 1));
        }
    }
    let is_code = rust && name.contains("/src/");
    if is_code
        && !name.starts_with("crates/door/")
        && !name.starts_with("crates/store/")
        && text.contains(&[".enq", "ueue("].concat())
    {
        findings
            .push(format!("{name}: only the crate door writes; go through Door::submit or Door::maintain"));
    }
    // The gate looks at its own database behind the product's back.
    let engines =
        ["crates/store/src/driver/", "crates/store/src/migration.rs", "crates/onceseal/src/gate/database/"];
    let driver = engines.iter().any(|place| name.starts_with(place));
    if is_code && !driver && name.starts_with("crates/") && text.contains("rusqlite::") {
        findings.push(format!("{name}: only store's driver names an engine"));
    }
    let paper = ["TODO", "PLAN", "STATUS", "PROGRESS", "NOTES"].iter().any(|word| {
        name.rsplit('/')
            .next()
            .is_some_and(|file| file.to_uppercase().starts_with(word) && has_extension(name, "md"))
    });
    if paper {
        findings.push(format!("{name}: no status papers in the tree"));
    }
}

fn has_extension(name: &str, wanted: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if ["rs", "toml", "md", "sql", "html", "css", "sh", "c"]
            .iter()
            .any(|ext| has_extension(&name, ext))
        {
            files.push(path);
        }
    }
    Ok(())
}
