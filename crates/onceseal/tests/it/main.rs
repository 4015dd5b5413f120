//! The real binary, real HTTP on a free port, folders of its own.

#[cfg(test)]
mod browser;
#[cfg(test)]
mod canary;
#[cfg(test)]
mod config;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod determinism;
#[cfg(test)]
mod export;
#[cfg(test)]
mod files;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod home;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod only_postgres;
#[cfg(test)]
mod only_sqlite;
#[cfg(test)]
mod operate;
#[cfg(test)]
mod readme;
#[cfg(test)]
mod restored;
#[cfg(test)]
mod start;
#[cfg(test)]
mod supply;
#[cfg(test)]
mod telemetry;
#[cfg(test)]
mod verify;
