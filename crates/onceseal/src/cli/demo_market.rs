//! `onceseal demo --supply`: how the story of the supply side is printed. Not here: telling it
//! ([`crate::demo::market`]).

use serde_json::{Value as Json, json};

use super::out::{Ended, Exit, Out, Tone, text};
use crate::demo::market::Told;

/// Prints what happened and the ledger; fine when the ledger balances.
///
/// # Errors
/// None of its own.
pub(super) fn show(out: Out, told: &[Told], ledger: &Json) -> Ended {
    let broken = list(ledger, "violations");
    if out.json {
        out.value(&as_json(told, ledger));
    } else {
        print(out, told, ledger);
    }
    Ok(if broken.is_empty() { Exit::Fine } else { Exit::Problems })
}

fn list<'a>(ledger: &'a Json, name: &str) -> &'a [Json] {
    ledger.get(name).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn print(out: Out, told: &[Told], ledger: &Json) {
    out.line("One key, one effect: a repeat gets the same result back, and the books always balance.");
    out.line("同一个键，只产生一次效果；重复到达，只复用，不重做；账目始终平衡。\n");
    let rows: Vec<Vec<String>> = told
        .iter()
        .map(|told| vec![told.title.to_owned(), answers(out, told), told.effect.clone()])
        .collect();
    out.table(&["what happened", "answers", "effect"], &rows);
    out.line("\nThe ledger, from its entries alone (CNY):");
    let rows: Vec<Vec<String>> = list(ledger, "totals")
        .iter()
        .map(|one| ["account_code", "debits", "credits", "balance"].map(|name| text(one, name)).to_vec())
        .collect();
    out.table(&["account", "debits", "credits", "balance"], &rows);
    let broken = list(ledger, "violations");
    broken.iter().for_each(|one| out.line(out.paint(Tone::Bad, &text(one, "text"))));
    let sends: usize = told.iter().flat_map(|told| told.answers.values()).sum();
    out.line(format_args!("\n{sends} requests, {} rules of the ledger broken", broken.len()));
}

fn answers(out: Out, told: &Told) -> String {
    let words = told.answers.iter().map(|((status, word), count)| {
        let tone = match (*status, word.is_empty()) {
            (200..300, true) => Tone::Good,
            (200..300, false) => Tone::Calm,
            _ => Tone::Bad,
        };
        let shown = format!("{status} {word}");
        format!("{count}x {}", out.paint(tone, shown.trim_end()))
    });
    words.collect::<Vec<_>>().join(", ")
}

fn as_json(told: &[Told], ledger: &Json) -> Json {
    let scenes: Vec<Json> = told
        .iter()
        .map(|told| {
            let answers: Vec<Json> = told
                .answers
                .iter()
                .map(|((status, word), count)| json!({ "http_status": status, "code": word, "count": count }))
                .collect();
            json!({ "what": told.title, "answers": answers, "effect": told.effect })
        })
        .collect();
    json!({ "scenes": scenes, "ledger": ledger })
}
