//! Housekeeping inside its transaction: no key, no record, no outcome. What a command does is `attempt`.

use kernel::Time;
use store::{Error, Query, Row, Work, Write, Written};
use tokio::sync::oneshot;

pub(crate) struct Housekeeping<T, P> {
    name: &'static str,
    reads: Vec<Query>,
    plan: P,
    value: Option<T>,
    answer: Option<oneshot::Sender<Ended<T>>>,
}

/// The plan's value and what committed.
pub(crate) type Ended<T> = Result<(T, Written), Error>;

impl<T, P> Housekeeping<T, P> {
    pub(crate) fn new(name: &'static str, reads: Vec<Query>, plan: P) -> (Self, oneshot::Receiver<Ended<T>>) {
        let (answer, answered) = oneshot::channel();
        (Self { name, reads, plan, value: None, answer: Some(answer) }, answered)
    }
}

impl<T, P> Work for Housekeeping<T, P>
where
    T: Send,
    P: Fn(Vec<Vec<Row>>, Time) -> Result<(Vec<Write>, T), Error> + Send,
{
    fn again(&self) -> bool {
        true
    }

    fn reads(&mut self) -> Vec<Query> {
        self.reads.clone()
    }

    fn writes(&mut self, rows: Vec<Vec<Row>>, now: Time) -> Result<Vec<Write>, Error> {
        let (writes, value) = (self.plan)(rows, now)?;
        self.value = Some(value);
        Ok(writes)
    }

    fn settled(mut self: Box<Self>, end: Result<Written, Error>) {
        let once = Error::Statement { name: self.name, cause: "settled without a plan".into() };
        let end = end.and_then(|written| Ok((self.value.take().ok_or(once)?, written)));
        if let Some(answer) = self.answer.take() {
            // Whoever asked may have gone; the work is done all the same.
            let _ = answer.send(end);
        }
    }
}
