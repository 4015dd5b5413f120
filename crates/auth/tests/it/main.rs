//! Tokens, keys and rules through the public interface, with forged tokens made by hand: the tests sign for
//! themselves and share no code with the issuer.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod bearer;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod issuer;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod never_panics;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod server;
#[cfg(test)]
mod standing;
#[cfg(test)]
mod world;
