//! The relay on the real store, against a server of our own that plays Telegram, and against channels that
//! follow a script. Names in brackets are those of the cases that a test is about.

#[cfg(test)]
mod acts;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod order;
#[cfg(test)]
mod running;
#[cfg(test)]
mod schedule;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod telegram;
#[cfg(test)]
mod world;
