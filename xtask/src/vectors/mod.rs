//! `cargo xtask vectors`: every published or recomputed vector through the code that serves.
//!
//! Modules in reading order: [`case`] (a sender's vector and the endpoint it needs), [`route`] (the real
//! router over a real store, with a clock that is set), [`proof`] (canonical JSON, signatures, archives,
//! key sets). Not here: the vectors themselves, which stand beside the crates that they test.

mod case;
mod proof;
mod route;

use anyhow::ensure;
use clap::Args;

use case::{Case, Expected};
use route::{Route, Verdict};

/// Nothing to choose.
#[derive(Args)]
pub(crate) struct Vectors {
    /// Name each case with its verdict
    #[arg(long)]
    verbose: bool,
}

/// What came of the senders' vectors.
#[derive(Default)]
struct Tally {
    cases: usize,
    flipped: usize,
    wrong: Vec<String>,
}

impl Vectors {
    /// Runs all vectors.
    ///
    /// # Errors
    /// One of them is wrong; each is named.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let tally = runtime.block_on(self.senders())?;
        let proofs = proof::run()?;
        println!("{} cases, {} wrong", tally.cases, tally.wrong.len());
        println!("{} flipped bytes of body and signature in accepted cases, none accepted", tally.flipped);
        println!("{} proof vectors (JCS, Ed25519, ZIP, JWKS), {} wrong", proofs.count, proofs.wrong.len());
        let wrong = [tally.wrong, proofs.wrong].concat();
        ensure!(wrong.is_empty(), "wrong:\n  {}", wrong.join("\n  "));
        ensure!(tally.cases >= 123, "only {} cases were found", tally.cases);
        Ok(())
    }

    async fn senders(&self) -> anyhow::Result<Tally> {
        let route = Route::open().await?;
        let mut tally = Tally::default();
        for case in case::all()? {
            tally.cases += 1;
            let told = route.judge(&case).await?;
            if self.verbose {
                println!("{}: {told}", case.name);
            }
            if told.verdict != case.expected {
                tally.wrong.push(format!("{}: {told}, expected {:?}", case.name, case.expected));
            }
            if told.verdict == Expected::Reject && told.written {
                tally.wrong.push(format!("{}: refused, but something was written", case.name));
            }
            if case.expected == Expected::Accept {
                flip(&route, &case, &mut tally).await?;
            }
        }
        Ok(tally)
    }
}

/// Every byte of body and signature, one at a time: none of them may still be accepted.
async fn flip(route: &Route, case: &Case, tally: &mut Tally) -> anyhow::Result<()> {
    for flipped in case.flips() {
        tally.flipped += 1;
        let Verdict { verdict, written, .. } = route.judge(&flipped).await?;
        if verdict == Expected::Accept || written {
            tally.wrong.push(format!("{}: still accepted", flipped.name));
        }
    }
    Ok(())
}
