//! Files are broken behind the server's back; what is fetched must be the recorded bytes all the same.

use sha2::{Digest as _, Sha256};
use testkit::Seeded;

use super::judge::{FORMS, Verdict};
use crate::lab::record::{self, Certificate};
use crate::lab::{House, Server};

/// Ways to break a file.
const WAYS: [Way; 4] = [Way::Flipped, Way::Short, Way::Empty, Way::Gone];

#[derive(Clone, Copy, Debug)]
enum Way {
    Flipped,
    Short,
    Empty,
    Gone,
}

/// Breaks one file of several certificates in each way, and fetches them.
///
/// # Errors
/// A file can't be broken, or the server is gone.
pub(crate) fn fetched(
    house: &House,
    server: &Server,
    seed: u64,
    verdict: &mut Verdict,
) -> anyhow::Result<()> {
    let certificates = record::certificates(&house.store()?)?;
    let mut choice = Seeded::new(seed);
    let (mut broken, mut right) = (0, 0);
    for way in WAYS {
        for (form, name) in FORMS.iter().enumerate() {
            let at = choice.below(u64::try_from(certificates.len())?);
            let Some(certificate) = usize::try_from(at).ok().and_then(|at| certificates.get(at)) else {
                continue;
            };
            let file = format!("{}.{name}", certificate.slug);
            damage(house, &file, way)?;
            broken += 1;
            if serves_the_record(server, certificate, &file, form)? {
                right += 1;
            } else {
                verdict.find(format!("{file}: {way:?} on the disk, and served so"));
            }
        }
    }
    verdict.line(format!("{broken} files broken on the disk, {right} served as recorded"));
    Ok(())
}

fn serves_the_record(server: &Server, kept: &Certificate, file: &str, form: usize) -> anyhow::Result<bool> {
    let answer = server.get(&format!("/d/{file}"))?;
    let hash = hex::encode(Sha256::digest(&answer.body));
    Ok(answer.status == 200 && kept.hashes.get(form) == Some(&hash))
}

fn damage(house: &House, file: &str, way: Way) -> anyhow::Result<()> {
    let path = house.deliveries().join(file);
    let mut bytes = std::fs::read(&path)?;
    let middle = bytes.len() / 2;
    match way {
        Way::Flipped => {
            if let Some(byte) = bytes.get_mut(middle) {
                *byte ^= 1;
            }
        }
        Way::Short => bytes.truncate(middle),
        Way::Empty => bytes.clear(),
        Way::Gone => return Ok(std::fs::remove_file(path)?),
    }
    Ok(std::fs::write(path, bytes)?)
}
