//! Values on their way to and from PostgreSQL.
//!
//! A prepared statement knows its parameters' types: values go in binary, by that type. An unnamed one
//! does not: values go as text, and the server reads them as what the statement needs.

use bytes::{BufMut as _, BytesMut};
use kernel::Time;
use tokio_postgres::Row as Answer;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type};

use crate::error::Error;
use crate::value::{Row, Value};

type Fault = Box<dyn std::error::Error + Sync + Send>;

/// 2000-01-01T00:00:00Z, from which the server counts, in microseconds since 1970.
const SERVER_EPOCH: i64 = 946_684_800_000_000;
/// Fraction digits of a money column.
const MONEY_SCALE: u16 = 6;

/// One parameter. Its `Debug` shows no value: the client library writes parameters to its debug log.
pub(super) enum Parameter<'v> {
    /// In binary, by the type that the server named.
    Typed(&'v Value),
    /// As text.
    Text(&'v Value),
}

impl std::fmt::Debug for Parameter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(value)")
    }
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        match self {
            Self::Typed(value) => typed(value, ty, out),
            Self::Text(value) => Ok(text(value, out)),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
        self.to_sql(ty, out)
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self {
            Self::Typed(_) => Format::Binary,
            Self::Text(_) => Format::Text,
        }
    }
}

fn typed(value: &Value, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Fault> {
    match (value, ty) {
        (Value::Null, _) => return Ok(IsNull::Yes),
        (Value::Int(int), &Type::INT8) => out.put_i64(*int),
        (Value::Int(int), &Type::INT4) => out.put_i32((*int).try_into()?),
        (Value::Int(int), &Type::INT2) => out.put_i16((*int).try_into()?),
        (Value::Int(int), &Type::BOOL) => out.put_u8(u8::from(*int != 0)),
        (Value::Int(int), &Type::NUMERIC) => numeric((*int).into(), 0, out),
        (Value::Money(count), &Type::NUMERIC) => numeric((*count).into(), MONEY_SCALE, out),
        (Value::Money(count), &Type::INT8) => out.put_i64(*count),
        (Value::Int(micros), &Type::TIMESTAMPTZ) => instant(Time::from_micros(*micros), out)?,
        (Value::Time(time), &Type::TIMESTAMPTZ) => instant(*time, out)?,
        (Value::Time(time), &Type::INT8) => out.put_i64(time.micros()),
        (Value::Text(text), &Type::JSONB) => {
            out.put_u8(1);
            out.put_slice(text.as_bytes());
        }
        (Value::Text(text), &Type::TEXT | &Type::VARCHAR | &Type::BPCHAR | &Type::JSON | &Type::UNKNOWN) => {
            out.put_slice(text.as_bytes());
        }
        (Value::Text(text), &Type::INET) => return text.parse::<std::net::IpAddr>()?.to_sql(ty, out),
        (Value::Bytes(bytes), &Type::BYTEA | &Type::UUID) => out.put_slice(bytes),
        (value, ty) => return Err(format!("a {} can't be bound to a {ty}", kind(value)).into()),
    }
    Ok(IsNull::No)
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Int(_) => "number",
        Value::Time(_) => "time",
        Value::Money(_) => "sum of money",
        Value::Text(_) => "text",
        Value::Bytes(_) => "byte string",
    }
}

fn instant(time: Time, out: &mut BytesMut) -> Result<(), Fault> {
    let since = time.micros().checked_sub(SERVER_EPOCH).ok_or("a time outside of the engine's range")?;
    out.put_i64(since);
    Ok(())
}

fn text(value: &Value, out: &mut BytesMut) -> IsNull {
    match value {
        Value::Null => return IsNull::Yes,
        Value::Int(int) => out.put_slice(int.to_string().as_bytes()),
        Value::Time(time) => out.put_slice(time.to_string().as_bytes()),
        Value::Money(count) => {
            let (sign, size) = (if *count < 0 { "-" } else { "" }, count.unsigned_abs());
            let text = format!("{sign}{}.{:06}", size / 1_000_000, size % 1_000_000);
            out.put_slice(text.as_bytes());
        }
        Value::Text(text) => out.put_slice(text.as_bytes()),
        Value::Bytes(bytes) => {
            out.put_slice(b"\\x");
            out.put_slice(hex::encode(bytes).as_bytes());
        }
    }
    IsNull::No
}

/// A count of units, or of 10^-6 units, as a NUMERIC with that many fraction digits: groups of four decimal
/// digits, the first with its weight (PostgreSQL, src/backend/utils/adt/numeric.c, `numeric_recv`).
fn numeric(count: i128, scale: u16, out: &mut BytesMut) {
    // Scaled so that the fraction is two whole groups.
    let mut rest = count.unsigned_abs() * if scale == 0 { 100_000_000 } else { 100 };
    let mut groups: Vec<u16> = Vec::with_capacity(8);
    while rest > 0 {
        groups.push(u16::try_from(rest % 10_000).unwrap_or(0));
        rest /= 10_000;
    }
    let weight = i16::try_from(groups.len()).unwrap_or(0) - 3;
    out.put_i16(i16::try_from(groups.len()).unwrap_or(0));
    out.put_i16(weight);
    out.put_u16(if count < 0 { 0x4000 } else { 0 });
    out.put_u16(scale);
    for group in groups.iter().rev() {
        out.put_u16(*group);
    }
}

/// Reads a whole row.
pub(super) fn row(name: &'static str, answer: &Answer) -> Result<Row, Error> {
    let values = (0..answer.len()).map(|column| {
        let damaged = |_| Error::Corrupt { table: name, column: column.to_string() };
        answer.try_get::<_, Received>(column).map(|received| received.0).map_err(damaged)
    });
    Ok(Row::new(name, values.collect::<Result<_, _>>()?))
}

struct Received(Value);

impl<'r> FromSql<'r> for Received {
    fn from_sql(ty: &Type, raw: &'r [u8]) -> Result<Self, Fault> {
        Ok(Self(match *ty {
            Type::INT8 => Value::Int(i64::from_sql(ty, raw)?),
            Type::INT4 => Value::Int(i32::from_sql(ty, raw)?.into()),
            Type::INT2 => Value::Int(i16::from_sql(ty, raw)?.into()),
            Type::BOOL => Value::Int(bool::from_sql(ty, raw)?.into()),
            Type::TIMESTAMPTZ => {
                let since = i64::from_be_bytes(raw.try_into()?);
                let micros = since.checked_add(SERVER_EPOCH).ok_or("a time outside of our range")?;
                Value::Time(Time::from_micros(micros))
            }
            Type::NUMERIC => number(raw)?,
            Type::JSONB => {
                let text = raw.strip_prefix(&[1]).ok_or("an unknown version of jsonb")?;
                Value::Text(std::str::from_utf8(text)?.to_owned())
            }
            Type::BYTEA | Type::UUID => Value::Bytes(raw.to_vec()),
            Type::INET => Value::Text(std::net::IpAddr::from_sql(ty, raw)?.to_string()),
            _ => Value::Text(std::str::from_utf8(raw)?.to_owned()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Fault> {
        Ok(Self(Value::Null))
    }

    fn accepts(ty: &Type) -> bool {
        matches!(
            *ty,
            Type::INT8
                | Type::INT4
                | Type::INT2
                | Type::BOOL
                | Type::TIMESTAMPTZ
                | Type::NUMERIC
                | Type::JSON
                | Type::JSONB
                | Type::BYTEA
                | Type::UUID
                | Type::INET
                | Type::TEXT
                | Type::VARCHAR
                | Type::BPCHAR
                | Type::NAME
        )
    }
}

/// A NUMERIC: one with a money column's six fraction digits is money, one without fraction (a sum of counts)
/// an integer.
fn number(raw: &[u8]) -> Result<Value, Fault> {
    let (pairs, _) = raw.as_chunks::<2>();
    let words: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
    let [count, weight, sign, scale, groups @ ..] = words.as_slice() else {
        return Err("a number cut short".into());
    };
    if groups.len() != usize::from(*count)
        || !matches!(sign, 0 | 0x4000)
        || !matches!(scale, 0 | &MONEY_SCALE)
    {
        return Err("not a number of ours".into());
    }
    let weight = i32::from(i16::from_be_bytes(weight.to_be_bytes()));
    // In units of 10^-8: the last group that six fraction digits can reach.
    let mut total: i128 = 0;
    for (group, position) in groups.iter().zip(0_i32..) {
        let power = u32::try_from(4 * (weight - position + 2)).map_err(|_| "a finer number than ours")?;
        let unit = 10_i128.checked_pow(power).ok_or("a number outside of our range")?;
        total =
            unit.checked_mul(i128::from(*group)).and_then(|v| total.checked_add(v)).ok_or("out of range")?;
    }
    let count = total / if *scale == 0 { 100_000_000 } else { 100 };
    let count = i64::try_from(if *sign == 0 { count } else { -count })?;
    Ok(if *scale == 0 { Value::Int(count) } else { Value::Money(count) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_money_come_back_as_they_went() {
        let cases = [0, 1, -1, 99, 100, 9_999, 1_000_000, 12_345_678, -98_765_432_101, i64::MAX, i64::MIN];
        for count in cases {
            let mut out = BytesMut::new();
            numeric(count.into(), MONEY_SCALE, &mut out);
            assert_eq!(number(&out).unwrap(), Value::Money(count));
            out.clear();
            numeric(count.into(), 0, &mut out);
            assert_eq!(number(&out).unwrap(), Value::Int(count));
        }
    }

    #[test]
    fn money_as_text_has_all_its_digits() {
        for (count, written) in
            [(1, "0.000001"), (-1_500_000, "-1.500000"), (i64::MIN, "-9223372036854.775808")]
        {
            let mut out = BytesMut::new();
            text(&Value::Money(count), &mut out);
            assert_eq!(&out[..], written.as_bytes());
        }
    }

    #[test]
    fn a_parameter_does_not_show_its_value() {
        let value = Value::Text("whsec_secret".into());
        assert_eq!(
            format!("{:?} {:?}", Parameter::Typed(&value), Parameter::Text(&value)),
            "(value) (value)"
        );
    }
}
