//! Form-encoded bodies (`application/x-www-form-urlencoded`), decoded exactly once, as bytes.

use percent_encoding::percent_decode;

use crate::Rejection;

/// Most pairs that are looked at; Alipay sends about forty.
const MAX_PAIRS: usize = 256;

/// A decoded name and its value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// The decoded pairs in wire order. Names are not checked for repeats here.
pub(crate) fn pairs(body: &[u8]) -> Result<Vec<Pair>, Rejection> {
    let mut pairs = Vec::new();
    for pair in body.split(|b| *b == b'&').filter(|pair| !pair.is_empty()) {
        if pairs.len() == MAX_PAIRS {
            return Err(Rejection::body(
                "BODY_NOT_FORM",
                "the form has over 256 fields",
                "表单字段超过 256 个",
            ));
        }
        let mut halves = pair.splitn(2, |b| *b == b'=');
        let name = decode(halves.next().unwrap_or_default());
        pairs.push((name, decode(halves.next().unwrap_or_default())));
    }
    Ok(pairs)
}

/// The decoded value of the only field of that name.
pub(crate) fn field(body: &[u8], name: &str) -> Result<Option<Vec<u8>>, Rejection> {
    let mut found = None;
    for (key, value) in pairs(body)? {
        if key == name.as_bytes() && found.replace(value).is_some() {
            return Err(twice());
        }
    }
    Ok(found)
}

/// A name stands twice.
pub(crate) fn twice() -> Rejection {
    Rejection::body("BODY_DUPLICATE_NAME", "a field of the form stands twice", "表单中有重复的字段")
}

fn decode(text: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> = text.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect();
    percent_decode(&spaced).collect()
}
