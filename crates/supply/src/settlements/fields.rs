//! Forms of the few texts that the platform's commands take.

use crate::action::Refusal;
use crate::code::Code;
use crate::exact::Details;

/// 1 to `most` printable characters, without a blank at either end; or `SUP_COM_4001`.
pub(super) fn text(field: &'static str, text: &str, most: usize) -> Result<(), Refusal> {
    let length = text.chars().count();
    let rule = match () {
        () if length == 0 => "required",
        () if length > most => "too_long",
        () if text.trim() != text || text.chars().any(char::is_control) => "characters",
        () => return Ok(()),
    };
    let wrong = Details::none().with("field", field).with("rule", rule);
    Err(Refusal::of(Code::ComField).with("fields", vec![wrong]))
}
