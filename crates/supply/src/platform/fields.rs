//! Fields that are not valid: all of them at once, each with the rule that it breaks (`SUP_COM_4001`).

use crate::action::Refusal;
use crate::code::Code;
use crate::exact::Details;

/// A field, a rule, and whether it is kept.
pub(crate) type Rule = (&'static str, &'static str, bool);

/// Refuses when a rule is broken.
pub(crate) fn checked(rules: &[Rule]) -> Result<(), Refusal> {
    let broken: Vec<Details> = rules
        .iter()
        .filter(|(_, _, kept)| !kept)
        .map(|(field, rule, _)| Details::none().with("field", *field).with("rule", *rule))
        .collect();
    if broken.is_empty() { Ok(()) } else { Err(Refusal::of(Code::ComField).with("fields", broken)) }
}

/// The refusal of one field.
pub(crate) fn refused(field: &'static str, rule: &'static str) -> Refusal {
    let broken = Details::none().with("field", field).with("rule", rule);
    Refusal::of(Code::ComField).with("fields", vec![broken])
}

/// A text of `1..=most` characters, not blank, without control characters.
pub(crate) fn is_text(text: &str, most: usize) -> bool {
    !text.trim().is_empty() && text.chars().count() <= most && !text.chars().any(char::is_control)
}
