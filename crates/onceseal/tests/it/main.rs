//! The real binary, real HTTP on a free port, folders of its own.

mod backup;
mod canary;
mod config;
mod demo;
mod home;
mod operate;
mod start;
mod verify;
