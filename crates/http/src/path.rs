//! The concrete path that a key belongs to (section 7.2, `api_path`): percent-decoded once, no trailing
//! slash, ids without leading zeros, an old name mapped to its new one, no query. A route's template would
//! let a key of one object be replayed onto another.

use std::fmt;

use percent_encoding::percent_decode_str;

/// Longest normalised path, in characters: the column of the specification's record table.
pub const PATH_MAX: usize = 200;

/// Why a path can't belong to a key. A router that matches whole segments has no route for any of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It does not begin with a slash.
    #[error("the path does not begin with a slash")]
    Relative,
    /// A segment is empty, `.` or `..`.
    #[error("a segment of the path is empty or made of dots")]
    Segment,
    /// A percent sign without two hex digits, or bytes that are not UTF-8.
    #[error("the path is not percent-encoded UTF-8")]
    Encoding,
    /// A decoded slash, or a control character.
    #[error("a segment of the path has a slash or a control character")]
    Character,
    /// Longer than [`PATH_MAX`].
    #[error("the path is longer than {PATH_MAX} characters")]
    TooLong,
}

/// A normalised path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ApiPath(String);

impl ApiPath {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Normalises the path of a request, without its query.
    ///
    /// # Errors
    /// [`Unfit`] for a path that no route can have.
    pub fn of(raw: &str, aliases: &Aliases) -> Result<Self, Unfit> {
        let rest = raw.strip_prefix('/').ok_or(Unfit::Relative)?;
        if rest.is_empty() {
            return Ok(Self("/".into()));
        }
        let mut path = String::with_capacity(raw.len());
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        for segment in rest.split('/') {
            path.push('/');
            path.push_str(&normalised(segment)?);
        }
        let path = aliases.resolve(path);
        if path.chars().count() > PATH_MAX { Err(Unfit::TooLong) } else { Ok(Self(path)) }
    }
}

impl fmt::Display for ApiPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn normalised(segment: &str) -> Result<String, Unfit> {
    let mut parts = segment.split('%');
    parts.next();
    // The decoder leaves a lone percent sign as it is, and `%zz` would be the same as `%25zz`.
    if !parts.all(|part| part.len() >= 2 && part.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())) {
        return Err(Unfit::Encoding);
    }
    let decoded = percent_decode_str(segment).decode_utf8().map_err(|_| Unfit::Encoding)?;
    if matches!(&*decoded, "" | "." | "..") {
        return Err(Unfit::Segment);
    }
    if decoded.chars().any(|c| c == '/' || c.is_control()) {
        return Err(Unfit::Character);
    }
    if decoded.bytes().all(|byte| byte.is_ascii_digit()) {
        let significant = decoded.trim_start_matches('0');
        return Ok(if significant.is_empty() { "0" } else { significant }.to_owned());
    }
    Ok(decoded.into_owned())
}

/// Old beginnings of paths and what they are called now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases(Vec<(String, String)>);

impl Aliases {
    /// From pairs of old and new beginning, each of whole segments: `/api/v1/supplier` and `/api/v1/supply`.
    #[must_use]
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut pairs: Vec<_> =
            pairs.into_iter().map(|(old, new)| (old.to_owned(), new.to_owned())).collect();
        // The longest beginning that matches wins.
        pairs.sort_by_key(|(old, _)| std::cmp::Reverse(old.len()));
        Self(pairs)
    }

    /// Applied once: an alias of an alias is a mistake in the table.
    fn resolve(&self, path: String) -> String {
        let renamed = self.0.iter().find_map(|(old, new)| {
            let rest = path.strip_prefix(old.as_str())?;
            (rest.is_empty() || rest.starts_with('/')).then(|| format!("{new}{rest}"))
        });
        renamed.unwrap_or(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aliases() -> Aliases {
        Aliases::new([("/api/v1/supplier", "/api/v1/supply"), ("/api/v1/supplier/old", "/api/v1/new")])
    }

    #[test]
    fn one_object_has_one_path() {
        for (raw, expected) in [
            ("/api/v1/supply/packages/17/publish", "/api/v1/supply/packages/17/publish"),
            ("/api/v1/supply/packages/17/publish/", "/api/v1/supply/packages/17/publish"),
            ("/api/v1/supply/packages/0017/publish", "/api/v1/supply/packages/17/publish"),
            ("/api/v1/supply/packages/%31%37/publish", "/api/v1/supply/packages/17/publish"),
            ("/api/v1/supply/packages/%30%3017/publish", "/api/v1/supply/packages/17/publish"),
            ("/api/v1/supplier/billing", "/api/v1/supply/billing"),
            ("/api/v1/supplier", "/api/v1/supply"),
            ("/api/v1/supplier/old/x", "/api/v1/new/x"),
            ("/api/v1/suppliers", "/api/v1/suppliers"),
            ("/a/000", "/a/0"),
            ("/a/007b", "/a/007b"),
            ("/a/%2537", "/a/%37"),
            ("/a/%E5%A5%97", "/a/套"),
            ("/", "/"),
        ] {
            assert_eq!(ApiPath::of(raw, &aliases()).as_ref().map(ApiPath::as_str), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn what_no_route_can_have_is_refused() {
        let long = format!("/{}", "a".repeat(200));
        for (raw, unfit) in [
            ("", Unfit::Relative),
            ("a/b", Unfit::Relative),
            ("*", Unfit::Relative),
            ("//", Unfit::Segment),
            ("/a//b", Unfit::Segment),
            ("/a/../b", Unfit::Segment),
            ("/a/%2e%2E/b", Unfit::Segment),
            ("/a/%", Unfit::Encoding),
            ("/a/%zz", Unfit::Encoding),
            ("/a/%3", Unfit::Encoding),
            ("/a/%ff", Unfit::Encoding),
            ("/a/b%2fc", Unfit::Character),
            ("/a/b%0Ac", Unfit::Character),
            ("/a/b%00", Unfit::Character),
            (&long, Unfit::TooLong),
        ] {
            assert_eq!(ApiPath::of(raw, &Aliases::default()), Err(unfit), "{raw}");
        }
    }
}
