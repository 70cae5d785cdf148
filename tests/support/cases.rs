//! `cases`: tables of cases in a test, which names the case that failed.

#![allow(unreachable_pub, reason = "each test has its own copy")]

/// The cases of a table, for a loop: where one fails, its place in the table is printed, from 0.
pub fn cases<I: IntoIterator>(table: I) -> Cases<I::IntoIter> {
    Cases { table: table.into_iter(), given: 0 }
}

/// What [`cases`] gives.
#[derive(Debug)]
pub struct Cases<I> {
    table: I,
    given: usize,
}

impl<I: Iterator> Iterator for Cases<I> {
    type Item = I::Item;

    fn next(&mut self) -> Option<I::Item> {
        self.given += 1;
        self.table.next()
    }
}

impl<I> Drop for Cases<I> {
    #[allow(clippy::print_stderr, reason = "only where a test fails")]
    fn drop(&mut self) {
        if std::thread::panicking() && self.given > 0 {
            eprintln!("it was case {} of the table", self.given - 1);
        }
    }
}
