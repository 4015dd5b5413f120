//! How long one Stripe delivery takes from headers and raw body to the event: `cargo run --release --example stripe_rate`.

use std::time::Instant;

use source::{Delivery, Kind, Secret, Settings, Signer, Source, samples};

const NOW: i64 = 1_767_225_600;
const ROUNDS: u32 = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let secret = Secret::new("whsec_rate_0123456789")?;
    let signer = Signer::new(Kind::Stripe, &secret)?;
    let mut settings = Settings::new("stripe", Kind::Stripe);
    settings.secrets.push(secret);
    let source = Source::new(settings)?;
    let body = samples::CHECKOUT_PAID.as_bytes();
    let headers = signer.sign(body, NOW, "");
    let headers: Vec<(&str, &[u8])> = headers.iter().map(|(n, v)| (n.as_str(), v.as_bytes())).collect();
    let delivery = Delivery { headers: &headers, body, now: NOW };
    for (what, open) in [("verify", false), ("verify, parse and project", true)] {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            if open {
                std::hint::black_box(source.open(&delivery)?);
            } else {
                std::hint::black_box(source.verify(&delivery)?);
            }
        }
        let each = start.elapsed() / ROUNDS;
        println!("{what}: {each:?} for {} bytes", body.len());
    }
    Ok(())
}
