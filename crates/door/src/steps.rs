//! Foreign steps of leased work: what a step returned is on record, under the fence, before the next
//! one begins, so that a take-over goes on where the last holder stopped instead of calling again.

use crate::command::Key;
use crate::entry::{Door, Failure};
use crate::record::Held;

/// Given to [`crate::Command::prepare`].
#[derive(Clone, Debug)]
pub struct Steps {
    leased: Option<(Door, Key, Held)>,
}

impl Steps {
    pub(crate) const fn atomic() -> Self {
        Self { leased: None }
    }

    pub(crate) const fn leased(door: Door, key: Key, held: Held) -> Self {
        Self { leased: Some((door, key, held)) }
    }

    /// Number of this attempt: 1 for the first.
    #[must_use]
    pub fn attempt(&self) -> i64 {
        self.leased.as_ref().map_or(1, |(_, _, held)| held.claim.attempt)
    }

    /// Runs a foreign step unless an earlier attempt's result is on record, and keeps the result before
    /// returning it. In the atomic form it just runs.
    ///
    /// The step must be bounded in time well below the lease, and must carry a token that is the same in
    /// every attempt: it runs again when an attempt died between the call and the record.
    ///
    /// # Errors
    /// The step's own failure; [`Failure::LeaseLost`] when another attempt has taken over.
    pub async fn once<F>(&self, name: &'static str, step: F) -> Result<Vec<u8>, Failure>
    where
        F: Future<Output = Result<Vec<u8>, Failure>> + Send,
    {
        let Some((door, key, held)) = &self.leased else {
            return step.await;
        };
        let looks = vec![key.table.fence(*held), key.table.step_find(held.id, name)];
        let found = door.store().queries(looks).await?;
        let [fence, kept] = found.as_slice() else { return Err(Failure::LeaseLost) };
        if fence.is_empty() {
            return Err(Failure::LeaseLost);
        }
        if let Some(row) = kept.first() {
            return Ok(row.bytes(0)?.to_vec());
        }
        let result = step.await?;
        let (table, held, bytes) = (key.table, *held, result.clone());
        let kept = door
            .maintain("step", Vec::new(), move |_, now| {
                Ok((vec![table.step_insert(held, name, &bytes, now)], ()))
            })
            .await;
        match kept {
            Ok(_) => Ok(result),
            Err(Failure::Store(store::Error::Raised(_))) => Err(Failure::LeaseLost),
            Err(other) => Err(other),
        }
    }
}
