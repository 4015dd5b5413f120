//! `onceseal demo`: tells the demo's story and prints what happened.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::{Value as Json, json};
use source::Secret;

use super::demo_market;
use super::out::{Ended, Exit, Out, Stop, Tone};
use super::serve::stop_signal;
use crate::demo::market::{self, Outside};
use crate::demo::proof::{Proved, prove};
use crate::demo::story::STORY;
use crate::demo::teller::{Teller, Told};
use crate::demo::{self, SOURCE};

/// Arguments.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  onceseal demo                              run, print, clean up
  onceseal demo --supply                     the supply side instead: credentials, packages, withdrawals, a ledger
  onceseal demo --serve                      stay up, so that you can open the certificates
  onceseal demo --folder ./demo --serve      keep everything in a folder of your choice")]
pub struct Demo {
    /// Tell the story of the supply side
    #[arg(long)]
    supply: bool,
    /// Stay up until Ctrl-C
    #[arg(long)]
    serve: bool,
    /// Where to listen; port 0 is a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Folder to use and to leave behind [default: a temporary one, removed at the end]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

impl Demo {
    /// Runs it.
    ///
    /// # Errors
    /// The server can't start or be reached.
    pub async fn run(self, out: Out) -> Ended {
        let began = Instant::now();
        let temporary = tempfile::Builder::new().prefix("onceseal-demo-").tempdir()?;
        let folder = match &self.folder {
            Some(folder) => std::path::absolute(folder)?,
            None => temporary.path().to_owned(),
        };
        let outside = if self.supply { Some(Outside::start().await.map_err(Stop::failed)?) } else { None };
        let more = outside.as_ref().map(|outside| outside.configuration(&folder)).transpose();
        let more = more.map_err(Stop::failed)?.unwrap_or_default();
        let stage = demo::set(&folder, self.listen, &more).await;
        let stage = stage.map_err(Stop::failed)?;
        let (base, nudge) = (stage.server.base.clone(), stage.server.nudge());
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(stage.server.run(async move {
            // A dropped sender ends the server as well.
            let _ = ended.await;
        }));
        let shown = match &outside {
            Some(outside) => market(out, (&base, &folder), outside).await,
            None => certificates(out, &base, &stage.secret).await,
        };
        nudge.nudge();
        let exit = shown?;
        if !out.json {
            let took = began.elapsed();
            out.line(
                out.paint(Tone::Faint, &format!("done in {}.{:03} s", took.as_secs(), took.subsec_millis())),
            );
        }
        if self.serve {
            stay(out, (&base, &folder), outside.as_ref()).await?;
        }
        drop(end);
        running.await.map_err(|cause| Stop::failed(cause.to_string()))??;
        Ok(exit)
    }
}

/// Until somebody ends it.
async fn stay(out: Out, (base, folder): (&str, &Path), outside: Option<&Outside>) -> Result<(), Stop> {
    let config = folder.join("onceseal.toml");
    if out.json {
        out.value(&json!({ "listening": base, "config": config }));
    } else {
        out.line(format_args!("\nlistening on {base} (Ctrl-C ends it)"));
        out.line(format_args!("look around:  onceseal list --config {}", config.display()));
    }
    let Some(outside) = outside else {
        stop_signal()?.await;
        return Ok(());
    };
    if !out.json {
        out.line(format_args!("SMS are written to {}", folder.join(market::SMS).display()));
    }
    tokio::select! {
        () = stop_signal()? => {}
        noted = outside.note(folder) => noted?,
    }
    Ok(())
}

async fn market(out: Out, stage: (&str, &Path), outside: &Outside) -> Ended {
    let teller = market::Teller::new(stage, outside).await.map_err(Stop::failed)?;
    let (told, ledger) = teller.tell().await.map_err(Stop::failed)?;
    demo_market::show(out, &told, &ledger)
}

async fn certificates(out: Out, base: &str, secret: &Secret) -> Ended {
    let teller = Teller::new(format!("{base}/webhooks/{SOURCE}"), secret).map_err(Stop::failed)?;
    let mut told = Vec::new();
    for scene in STORY {
        told.push(teller.tell(scene).await.map_err(Stop::failed)?);
    }
    let mut proved: Vec<Proved> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for answer in told.iter().filter_map(|told| told.certified.as_ref()) {
        // The second report of a change names the first one's certificate.
        if seen.insert(answer.get("run_hash")) {
            proved.push(prove(base, answer).await.map_err(Stop::failed)?);
        }
    }
    if out.json {
        out.value(&as_json(&told, &proved));
    } else {
        print(out, &told, &proved);
    }
    let single = told.iter().all(|told| told.run_hashes.len() <= 1);
    let valid = proved.iter().all(Proved::is_valid);
    Ok(if single && valid && !proved.is_empty() { Exit::Fine } else { Exit::Problems })
}

fn print(out: Out, told: &[Told], proved: &[Proved]) {
    out.line("One event, one formal result: a repeat gets the same result back, never a second one.");
    out.line("同一事件，只产生一个正式结果；重复到达，只复用，不重做。\n");
    let rows: Vec<Vec<String>> = told
        .iter()
        .map(|told| {
            vec![
                told.scene.title.to_owned(),
                told.event_id.clone(),
                told.scene.times.to_string(),
                answers(out, told),
                certificate(told),
                told.arrivals.map_or_else(|| "-".into(), |count| count.to_string()),
            ]
        })
        .collect();
    out.table(&["what happened", "event", "sends", "answers", "certificate", "arrivals"], &rows);
    out.line("\nVerified offline with the published anchor keys:");
    for one in proved {
        let forms: Vec<String> = one
            .forms
            .iter()
            .map(|(form, verdict)| {
                let tone = if one.is_valid() { Tone::Good } else { Tone::Bad };
                format!("{form} {}", out.paint(tone, &verdict.to_string()))
            })
            .collect();
        out.line(format_args!("  {}\n    {}\n    {}", one.reference, forms.join(", "), one.html_url));
    }
    let sends: usize = told.iter().map(|told| told.scene.times).sum();
    let doubled = told.iter().filter(|told| told.run_hashes.len() > 1).count();
    out.line(format_args!("\n{sends} deliveries, {} certificates, {doubled} doubled", proved.len()));
}

fn answers(out: Out, told: &Told) -> String {
    let words = told.answers.iter().map(|((status, result), count)| {
        let tone = match (*status, result.as_str()) {
            (200, "processed") => Tone::Good,
            (200..300, _) => Tone::Calm,
            _ => Tone::Bad,
        };
        let word = if (200..300).contains(status) { result.clone() } else { format!("{status} {result}") };
        format!("{count}x {}", out.paint(tone, &word))
    });
    words.collect::<Vec<_>>().join(", ")
}

/// First digits of the run hash: the same in every row of one certificate.
fn certificate(told: &Told) -> String {
    let short = |hash: &String| hash.chars().take(10).collect::<String>();
    match told.run_hashes.as_slice() {
        [] => "-".into(),
        hashes => hashes.iter().map(short).collect::<Vec<_>>().join(" "),
    }
}

fn as_json(told: &[Told], proved: &[Proved]) -> Json {
    let scenes: Vec<Json> = told
        .iter()
        .map(|told| {
            let answers: Vec<Json> = told
                .answers
                .iter()
                .map(|((status, result), count)| json!({ "http_status": status, "result": result, "count": count }))
                .collect();
            json!({ "what": told.scene.title, "event_id": told.event_id, "sends": told.scene.times,
                "answers": answers, "run_hashes": told.run_hashes, "arrivals": told.arrivals })
        })
        .collect();
    let certificates: Vec<Json> = proved
        .iter()
        .map(|one| {
            let forms: serde_json::Map<String, Json> =
                one.forms.iter().map(|(form, verdict)| ((*form).into(), verdict.code().into())).collect();
            json!({ "ref": one.reference, "html_url": one.html_url, "verdicts": forms })
        })
        .collect();
    json!({ "scenes": scenes, "certificates": certificates })
}
