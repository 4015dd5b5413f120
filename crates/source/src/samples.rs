//! Sample bodies in Stripe's shape, for the demo and for `onceseal send`. `samples/README.md` says what each shows.

/// Checkout, paid by card: certified.
pub const CHECKOUT_PAID: &str = include_str!("../samples/checkout-paid.json");
/// [`CHECKOUT_PAID`] rendered at another attempt: another `pending_webhooks`, the same event.
pub const CHECKOUT_PAID_RENDERED_AGAIN: &str = include_str!("../samples/checkout-paid-rendered-again.json");
/// The change of [`CHECKOUT_PAID`] under a second event id.
pub const CHECKOUT_PAID_SECOND_ID: &str = include_str!("../samples/checkout-paid-second-id.json");
/// Checkout, paid, 500 yen: a currency without a minor unit.
pub const CHECKOUT_PAID_JPY: &str = include_str!("../samples/checkout-paid-jpy.json");
/// Checkout completed while the debit has not arrived: not certified.
pub const CHECKOUT_UNPAID: &str = include_str!("../samples/checkout-unpaid.json");
/// The session of [`CHECKOUT_UNPAID`], paid four days later: certified.
pub const CHECKOUT_ASYNC_SUCCEEDED: &str = include_str!("../samples/checkout-async-succeeded.json");
/// A debit that failed.
pub const CHECKOUT_ASYNC_FAILED: &str = include_str!("../samples/checkout-async-failed.json");
/// The payment of [`CHECKOUT_PAID`].
pub const PAYMENT_INTENT_SUCCEEDED: &str = include_str!("../samples/payment-intent-succeeded.json");
/// 5.00 of 20.00 refunded.
pub const REFUND_PARTIAL: &str = include_str!("../samples/refund-partial.json");
/// The same charge refunded in full.
pub const REFUND_FULL: &str = include_str!("../samples/refund-full.json");
/// A dispute of the same charge.
pub const DISPUTE_CREATED: &str = include_str!("../samples/dispute-created.json");
/// A subscription's renewal.
pub const INVOICE_PAID: &str = include_str!("../samples/invoice-paid.json");

/// All samples: a short name and the body, in the order of a story.
pub const ALL: [(&str, &str); 12] = [
    ("checkout-paid", CHECKOUT_PAID),
    ("checkout-paid-rendered-again", CHECKOUT_PAID_RENDERED_AGAIN),
    ("checkout-paid-second-id", CHECKOUT_PAID_SECOND_ID),
    ("checkout-paid-jpy", CHECKOUT_PAID_JPY),
    ("checkout-unpaid", CHECKOUT_UNPAID),
    ("checkout-async-succeeded", CHECKOUT_ASYNC_SUCCEEDED),
    ("checkout-async-failed", CHECKOUT_ASYNC_FAILED),
    ("payment-intent-succeeded", PAYMENT_INTENT_SUCCEEDED),
    ("refund-partial", REFUND_PARTIAL),
    ("refund-full", REFUND_FULL),
    ("dispute-created", DISPUTE_CREATED),
    ("invoice-paid", INVOICE_PAID),
];
