//! The words that operations are described in: fields with their kinds and limits, shapes, operations. Not here: the
//! descriptions themselves, and how they are written as JSON Schema.

use supply::Code;

/// What a field may hold.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// An id, from 1.
    Id,
    /// A whole number of this range.
    Whole(i64, i64),
    /// A text of so many characters on one line, without a blank at either end.
    Line(u32),
    /// The same, with blanks around it that do not count.
    Padded(u32),
    /// A text of at most so many characters.
    Text(u32),
    /// A text of so many characters that goes in and never comes out.
    Secret(u32, u32),
    /// A text of an answer.
    Said,
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false.
    Flag,
    /// Only true.
    Agreed,
    /// An amount of a request, in major units, with at most so many decimals.
    Amount(Least, u8),
    /// A price of a request: major units per 1,000,000 tokens, at most 6 decimals.
    Price,
    /// What should be a price and is judged by its item.
    Offered,
    /// A quota of a request, at most 6 decimals.
    Quota(Least),
    /// An exact number of an answer.
    Exact,
    /// An amount of an answer in minor units, as text.
    Minor,
    /// ISO 4217.
    Currency,
    /// A calendar day.
    Day,
    /// An instant.
    Instant,
    /// A UUID.
    Uuid,
    /// A phone number.
    Phone,
    /// Texts of an answer.
    Texts,
    /// A path of the API.
    Path,
    /// An idempotency key, as its header has it.
    Key,
    /// Scopes of a token.
    Scopes,
    /// A state, as the audit has it.
    State,
    /// One object.
    Object(&'static [Field]),
    /// So many objects.
    List(&'static [Field], u32, u32),
    /// Any number of objects.
    Rows(&'static [Field]),
}

/// The least that a number of a request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Least {
    /// 0 is taken.
    Zero,
    /// 0 is not.
    Above,
}

/// Whether a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Always, and never null.
    Always,
    /// Always, and null where there is nothing.
    Nullable,
    /// It may be left out.
    Maybe,
}

/// A field, a parameter.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) need: Need,
    pub(super) about: &'static str,
}

/// A field that is always there.
pub(super) const fn must(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, need: Need::Always, about }
}

/// A field that may be left out.
pub(super) const fn may(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, need: Need::Maybe, about }
}

/// A field of an answer that may be null.
pub(super) const fn or_null(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, need: Need::Nullable, about }
}

/// An object with a name of its own in the document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) fields: &'static [Field],
}

/// What success answers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// `data` with this status.
    Data(u16, Shape),
    /// A page of a list.
    Page(Shape),
    /// 204.
    Nothing,
}

impl Answer {
    /// The status of success.
    pub(super) const fn status(self) -> u16 {
        match self {
            Self::Data(status, _) => status,
            Self::Page(_) => 200,
            Self::Nothing => 204,
        }
    }
}

/// What the protocol of repeats asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// A read.
    Read,
    /// A write whose key is optional.
    Optional,
    /// One of the five.
    Required,
}

/// What a body is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    /// There is none; `{}` is taken, too.
    None,
    /// These fields and no others.
    Fields(Shape),
}

/// An exchange of section 25, as JSON texts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Example {
    pub(super) request: Option<&'static str>,
    pub(super) data: &'static str,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) id: &'static str,
    /// In lower case.
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) summary_zh: &'static str,
    /// More than the summary says; may be empty.
    pub(super) about: &'static str,
    /// One of them is enough; none where a good token is.
    pub(super) scopes: &'static [&'static str],
    pub(super) keys: Keys,
    pub(super) query: &'static [Field],
    pub(super) body: Body,
    pub(super) answer: Answer,
    /// What commands and handlers refuse with; the codes of protocol and authentication are not among them.
    pub(super) codes: &'static [Code],
    pub(super) example: Option<Example>,
    /// Whether it is an old name that goes away.
    pub(super) standing: Standing,
}

/// Whether an operation is to be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Yes.
    Current,
    /// It has a successor.
    Deprecated,
}

const EMPTY: Shape = Shape { name: "Nothing", fields: &[] };

/// What reads have in common.
pub(super) const READ: Operation = Operation {
    id: "",
    method: "get",
    path: "",
    summary: "",
    summary_zh: "",
    about: "",
    scopes: &[],
    keys: Keys::Read,
    query: &[],
    body: Body::None,
    answer: Answer::Data(200, EMPTY),
    codes: &[],
    example: None,
    standing: Standing::Current,
};

/// What writes with an optional key have in common.
pub(super) const WRITE: Operation = Operation { method: "post", keys: Keys::Optional, ..READ };

/// What the five have in common.
pub(super) const CRITICAL: Operation = Operation { keys: Keys::Required, ..WRITE };

/// Which page of a list.
pub(super) const PAGE: Field = may("page", Kind::Whole(1, 4_294_967_295), "From 1; 1 where nothing is said.");
/// How much of a list.
pub(super) const PAGE_SIZE: Field =
    may("page_size", Kind::Whole(1, 200), "20 where nothing is said. Outside 1 to 200 is refused.");

/// Providers of upstream accounts.
pub(super) const PROVIDERS: &[&str] = &custody::Provider::WORDS;
/// Units of quotas.
pub(super) const UNITS: &[&str] = &["token", "request", "credit"];
