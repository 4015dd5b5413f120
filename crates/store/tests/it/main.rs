//! Tests of the store through its public API, on real files.

#[cfg(test)]
mod copies;
#[cfg(test)]
mod folder;
#[cfg(test)]
mod full;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod reads;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod statements;
