//! One session with the server: its prepared statements, its notices, whether it can be used again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::TryStreamExt as _;
use futures::future::{BoxFuture, FutureExt as _, MaybeDone, maybe_done};
use tokio::task::JoinHandle;
use tokio_postgres::error::DbError;
use tokio_postgres::types::Type;
use tokio_postgres::{AsyncMessage, Client, Config, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::fault::{Fault, brief, unavailable};
use super::settings::{Mode, Timeouts};
use super::value::{self, Parameter};
use crate::dialect::Dialect;
use crate::error::Error;
use crate::statement::{Expect, Query, Write};
use crate::value::{Row, Value};

/// A session.
pub(super) struct Connection {
    client: Client,
    mode: Mode,
    answer: Duration,
    /// Sent in front of each transaction.
    begin: Cow<'static, str>,
    statements: HashMap<Call, Prepared>,
    /// The server warned that a commit may not have reached the standby.
    unreplicated: Arc<AtomicBool>,
    /// Outside of a transaction, nothing on the wire.
    pub(super) at_rest: bool,
    /// The pool's count of lost servers when it was made.
    pub(super) generation: u64,
    conversation: JoinHandle<()>,
}

/// A statement and how it is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Call {
    sql: Cow<'static, str>,
    checked: bool,
}

struct Prepared {
    text: String,
    /// Whether its rows are the statement's own, not the check's.
    rows: bool,
    /// Only with prepared statements.
    statement: Option<Statement>,
}

/// What a statement gave.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) rows: Vec<Row>,
}

pub(super) type Answering<'c> = BoxFuture<'c, Result<Answer, Fault>>;

impl Drop for Connection {
    fn drop(&mut self) {
        self.conversation.abort();
    }
}

impl Connection {
    pub(super) async fn open(
        config: &Config,
        tls: &MakeRustlsConnect,
        (mode, timeouts): (Mode, &Timeouts),
        generation: u64,
    ) -> Result<Self, Error> {
        let connecting = config.connect(tls.clone());
        let (client, mut wire) = match tokio::time::timeout(timeouts.connect, connecting).await {
            Ok(Ok(made)) => made,
            Ok(Err(cause)) => {
                return Err(unavailable(&format!("no connection to the database: {}", brief(&cause))));
            }
            Err(_) => return Err(unavailable("the database did not take a connection in time")),
        };
        let unreplicated = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&unreplicated);
        let conversation = tokio::spawn(async move {
            // Notices come before the answer that they belong to, and are seen here first.
            while let Some(Ok(message)) = poll_fn(|context| wire.poll_message(context)).await {
                if let AsyncMessage::Notice(notice) = message {
                    heed(&notice, &flag);
                }
            }
        });
        let limits = limits(timeouts);
        // Not "read write": a server that takes no writes shall say so.
        let begin = "begin isolation level read committed";
        let begin = match mode {
            Mode::Prepared => begin.into(),
            Mode::Unnamed => format!("{begin}; {}", limits.replace("set ", "set local ")).into(),
        };
        let answer = timeouts.answer;
        let statements = HashMap::new();
        let connection = Self {
            client,
            mode,
            answer,
            begin,
            statements,
            unreplicated,
            at_rest: true,
            generation,
            conversation,
        };
        if mode == Mode::Prepared {
            connection.simple(&limits).await.map_err(Fault::into_error)?;
        }
        Ok(connection)
    }

    pub(super) fn is_usable(&self) -> bool {
        self.at_rest && !self.client.is_closed()
    }

    /// Forgets what was prepared: the schema has changed under it.
    pub(super) fn forget_statements(&mut self) {
        self.statements.clear();
    }

    /// Whether a commit since the last call may not have reached the standby.
    pub(super) fn take_unreplicated(&self) -> bool {
        self.unreplicated.swap(false, Ordering::SeqCst)
    }

    /// Runs text without parameters.
    pub(super) async fn simple(&self, sql: &str) -> Result<Answer, Fault> {
        self.simple_within(sql, self.answer).await
    }

    /// As [`Connection::simple`], for what may take longer than an answer usually does.
    pub(super) async fn simple_within(&self, sql: &str, within: Duration) -> Result<Answer, Fault> {
        match tokio::time::timeout(within, self.client.batch_execute(sql)).await {
            Ok(Ok(())) => Ok(Answer::default()),
            Ok(Err(cause)) => Err(Fault::of("session", &cause)),
            Err(_) => Err(late()),
        }
    }

    pub(super) fn begin(&self) -> Answering<'_> {
        self.simple_in_flight(&self.begin)
    }

    pub(super) fn simple_in_flight<'c>(&'c self, sql: &'c str) -> Answering<'c> {
        async move {
            self.client.batch_execute(sql).await.map_err(|cause| Fault::of("transaction", &cause))?;
            Ok(Answer::default())
        }
        .boxed()
    }

    /// Makes sure that all statements are ready to be sent. Costs a round trip for those that are new to
    /// this connection.
    pub(super) async fn ready<'s>(
        &mut self,
        calls: impl Iterator<Item = (&'static str, &'s Cow<'static, str>, Option<Expect>)>,
    ) -> Result<(), Fault> {
        let mut new: Vec<(&'static str, Call, String)> = Vec::new();
        for (name, sql, expect) in calls {
            let call = Call { sql: sql.clone(), checked: expect == Some(Expect::One) };
            if !self.statements.contains_key(&call) && !new.iter().any(|(_, other, _)| *other == call) {
                let text =
                    if call.checked { checked(sql) } else { Dialect::Postgres.render(sql).into_owned() };
                new.push((name, call, text));
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let prepared = match self.mode {
            Mode::Unnamed => new.iter().map(|_| Ok(None)).collect(),
            Mode::Prepared => {
                let preparing =
                    new.iter().map(|(name, _, text)| {
                        let client = &self.client;
                        async move {
                            client.prepare(text).await.map(Some).map_err(|cause| Fault::of(name, &cause))
                        }
                    });
                self.in_time(in_order(preparing)).await?
            }
        };
        first_fault(&prepared)?;
        for ((_, call, text), statement) in new.into_iter().zip(prepared) {
            let rows = !text.starts_with(CHECK) || returns(&call.sql);
            self.statements.insert(call, Prepared { text, rows, statement: statement? });
        }
        Ok(())
    }

    pub(super) fn read<'c>(&'c self, query: &'c Query) -> Answering<'c> {
        self.call(query.name, &query.sql, None, &query.values)
    }

    pub(super) fn write<'c>(&'c self, write: &'c Write) -> Answering<'c> {
        let Write { name, sql, values, expect, numbered } = write;
        let answering = self.call(name, sql, Some(*expect), values);
        if !numbered {
            return answering;
        }
        async move { answering.await.map_err(Fault::renumbered) }.boxed()
    }

    #[expect(clippy::ptr_arg, reason = "a borrowed text is kept as it is, without a copy")]
    fn call<'c>(
        &'c self,
        name: &'static str,
        sql: &'c Cow<'static, str>,
        expect: Option<Expect>,
        values: &'c [Value],
    ) -> Answering<'c> {
        let call = Call { sql: sql.clone(), checked: expect == Some(Expect::One) };
        let Some(prepared) = self.statements.get(&call) else {
            let error = Error::Statement { name, cause: "sent before it was prepared".into() };
            return async move { Err(Fault::Final(error)) }.boxed();
        };
        async move {
            let stream = match &prepared.statement {
                Some(statement) => {
                    self.client.query_raw(statement, values.iter().map(Parameter::Typed)).await
                }
                None => {
                    let values = values.iter().map(|value| (Parameter::Text(value), Type::UNKNOWN));
                    self.client.query_typed_raw(&prepared.text, values).await
                }
            };
            let fault = |cause| Fault::of(name, &cause);
            let rows: Vec<_> = stream.map_err(fault)?.try_collect().await.map_err(fault)?;
            if !prepared.rows {
                return Ok(Answer::default());
            }
            let rows = rows.iter().map(|row| value::row(name, row)).collect::<Result<_, _>>();
            Ok(Answer { rows: rows.map_err(Fault::Final)? })
        }
        .boxed()
    }

    /// Bounds a round trip.
    pub(super) async fn in_time<T>(&self, trip: impl Future<Output = T>) -> Result<T, Fault> {
        self.within(self.answer, trip).await
    }

    /// Bounds a round trip otherwise.
    pub(super) async fn within<T>(&self, bound: Duration, trip: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::time::timeout(bound, trip).await.map_err(|_| late())
    }
}

fn late() -> Fault {
    Fault::Lost(unavailable("the database did not answer in time"))
}

/// Sends all in their order, then reads all answers in their order. A later one never waits for an
/// earlier one's answer to be sent.
pub(super) async fn in_order<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut started: Vec<Pin<Box<MaybeDone<F>>>> =
        futures.into_iter().map(|future| Box::pin(maybe_done(future))).collect();
    poll_fn(|context| {
        for future in &mut started {
            // The first poll sends; whether it is done is asked below.
            let _ = future.as_mut().poll(context);
        }
        Poll::Ready(())
    })
    .await;
    let mut outputs = Vec::with_capacity(started.len());
    for mut future in started {
        future.as_mut().await;
        outputs.extend(future.as_mut().take_output());
    }
    outputs
}

/// The first error that is one itself; what follows it in an undone transaction says nothing.
pub(super) fn first_fault<T>(answers: &[Result<T, Fault>]) -> Result<(), Fault> {
    let faults = || answers.iter().filter_map(|answer| answer.as_ref().err());
    let first = faults().find(|fault| !matches!(fault, Fault::Follows)).or_else(|| faults().next());
    first.map_or(Ok(()), |fault| Err(fault.clone()))
}

/// How a checked statement begins.
const CHECK: &str = "with hit as (";

/// The statement inside a check: it raises in the server unless exactly one row was hit, so that a commit
/// on the same wire can't keep what must not be kept.
fn checked(sql: &str) -> String {
    let sql = Dialect::Postgres.render(sql);
    let words: Vec<&str> = sql.split_ascii_whitespace().collect();
    let has = |word: &str| words.contains(&word);
    // One row or an error: nothing to check.
    if words.first() == Some(&"insert") && has("values") && !has("select") && !has("conflict") {
        return sql.into_owned();
    }
    if returns(&sql) {
        return format!(
            "{CHECK}{sql}) select hit.* from (select onceseal_hit((select count(*) from hit)) as fine) checked left join hit on checked.fine"
        );
    }
    format!("{CHECK}{sql} returning 1) select onceseal_hit(count(*)) from hit")
}

fn returns(sql: &str) -> bool {
    sql.split_ascii_whitespace().any(|word| word == "returning")
}

fn limits(timeouts: &Timeouts) -> String {
    let Timeouts { lock, statement, idle, .. } = timeouts;
    format!(
        "set lock_timeout = {}; set statement_timeout = {}; set idle_in_transaction_session_timeout = {}",
        lock.as_millis(),
        statement.as_millis(),
        idle.as_millis()
    )
}

/// The server has no code of its own for a wait that was cancelled, and its words may be in any language;
/// the name of its routine is not.
fn heed(notice: &DbError, unreplicated: &AtomicBool) {
    if notice.routine() == Some("SyncRepWaitForLSN") {
        unreplicated.store(true, Ordering::SeqCst);
    }
    tracing::debug!(severity = notice.severity(), code = notice.code().code(), "the database gave notice");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_of_values_needs_no_check_of_its_rows() {
        let sql = "insert into notes (name) values ($1)";
        assert_eq!(checked(sql), sql);
    }

    #[test]
    fn everything_else_that_must_hit_one_row_is_checked() {
        for sql in [
            "update notes set name = $1",
            "insert into notes (name) select $1",
            "insert into notes (name) values ($1) on conflict do nothing",
            "delete from notes where id = $1 returning id",
        ] {
            assert!(checked(sql).contains("onceseal_hit"), "{sql}");
        }
    }
}
