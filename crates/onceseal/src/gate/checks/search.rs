//! SEC-SUP-001: every mounted credential holds one canary, and no eight characters of it in a row stand anywhere: not in
//! an answer, a log, a meter, an export, a table or the database's file. First the search proves that it finds: the
//! canary is put into a copy of each kind of place, and must be found there.

use guard::canary::{Canary, RUN};
use play::Call;

use super::super::check::{Book, Check};
use super::super::database::Engine;
use super::super::stage::Stage;

/// The canary, and which two bytes its runs begin with: few places of a text are looked at twice.
struct Needle {
    canary: Canary,
    starts: Vec<bool>,
}

impl Needle {
    fn new(text: &str) -> Option<Self> {
        let mut starts = vec![false; 1 << 16];
        for pair in text.as_bytes().windows(2) {
            if let Some(start) = starts.get_mut(at(pair)) {
                *start = true;
            }
        }
        Some(Self { canary: Canary::new(text, RUN)?, starts })
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        let begins = |run: &&[u8]| self.starts.get(at(run)).copied().unwrap_or(true);
        bytes.windows(RUN).filter(begins).any(|run| self.canary.seen_in(run).is_some())
    }
}

fn at(run: &[u8]) -> usize {
    match run {
        [first, second, ..] => usize::from(*first) << 8 | usize::from(*second),
        _ => 0,
    }
}

/// A kind of place, and everything of it.
struct Place {
    kind: &'static str,
    texts: Vec<(String, Vec<u8>)>,
}

pub(super) async fn run(stage: &Stage, book: &Book) {
    let canary = Needle::new(&stage.canary).ok_or_else(|| "the canary is too short".to_owned());
    let places = places(stage).await;
    let (canary, places) = match (canary, places) {
        (Ok(canary), Ok(places)) => (canary, places),
        (Err(cause), _) | (_, Err(cause)) => {
            for id in ["CANARY.planted", "CANARY.absent"] {
                book.check(id, async |_| Err(cause.clone())).await;
            }
            return;
        }
    };
    book.check("CANARY.planted", async |check| {
        found(check, (&canary, &stage.canary), &places);
        Ok(())
    })
    .await;
    book.check("CANARY.absent", async |check| {
        absent(check, &canary, &places);
        Ok(())
    })
    .await;
}

async fn places(stage: &Stage) -> Result<Vec<Place>, String> {
    let client = &stage.market.client;
    let metrics = client.send(&Call::get("/metrics", "")).await?.done()?.body;
    let export = stage.operator("/export").await?.body;
    let tables = stage.database.whole().await?;
    let mut places = vec![
        Place { kind: "answers", texts: stage.tape.lock().clone() },
        Place { kind: "logs", texts: stage.logs() },
        Place { kind: "meters", texts: vec![("/metrics".into(), metrics)] },
        Place { kind: "exports", texts: vec![("export".into(), export)] },
        Place {
            kind: "tables",
            texts: tables.into_iter().map(|(name, text)| (name, text.into_bytes())).collect(),
        },
        Place { kind: "files", texts: files(&stage.data())? },
    ];
    if stage.engine == Engine::Postgres {
        places.push(Place { kind: "configuration", texts: files(stage.folder())? });
    }
    Ok(places)
}

/// All files that statements stand in.
pub(super) fn shelved(stage: &Stage) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut all = Vec::new();
    for shelf in stage.shelves() {
        all.extend(files(&shelf)?);
    }
    Ok(all)
}

/// All files of a folder, keys left out: they are no place where anything is written.
fn files(folder: &std::path::Path) -> Result<Vec<(String, Vec<u8>)>, String> {
    let fail = |cause: std::io::Error| format!("the gate's folder can't be read: {cause}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.is_file() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // A file that is gone meanwhile holds nothing any more.
            found.push((name, std::fs::read(&path).unwrap_or_default()));
        }
    }
    Ok(found)
}

fn found(check: &mut Check, (canary, text): (&Needle, &str), places: &[Place]) {
    // Any run will do: one out of the middle.
    let run = text.get(11..11 + RUN).unwrap_or_default();
    for place in places {
        let mut copy = place.texts.first().map(|(_, bytes)| bytes.clone()).unwrap_or_default();
        let middle = copy.len() / 2;
        copy.splice(middle..middle, run.bytes());
        check.value(format!("{}: texts", place.kind), place.texts.len());
        check.so(format!("one run in a copy of the {} is found", place.kind), canary.is_in(&copy));
        let less = run.get(1..).unwrap_or_default();
        check.so("one character less is not", !canary.is_in(less.as_bytes()));
    }
}

fn absent(check: &mut Check, canary: &Needle, places: &[Place]) {
    for place in places {
        let bytes: usize = place.texts.iter().map(|(_, bytes)| bytes.len()).sum();
        check.value(format!("{}: bytes searched", place.kind), bytes);
        check.so(
            format!("{}: there is something to search", place.kind),
            bytes > 0 || place.kind == "exports",
        );
        let seen: Vec<&String> =
            place.texts.iter().filter(|(_, bytes)| canary.is_in(bytes)).map(|(name, _)| name).collect();
        check.equal(
            format!("{}: places with a part of the canary", place.kind),
            &Vec::<&String>::new(),
            &seen,
        );
    }
}
