//! Several who find the same file unreadable at once: none of them is left with the view that has it.

use std::sync::{Arc, Barrier};
use std::thread;

use chain::BlockNumber;
use store::disk::Disk as _;
use store::read::block_on;
use store::{Limits, Reader, Store};

use super::shelf::{Shelf, open_store, range, whole};

/// How often the file goes away. Before callers took turns one of the first rounds failed.
const ROUNDS: usize = 200;

/// Reads what is gone, as a request does; tells whether asking again meets another view.
fn may_ask_again(store: &Store, begin: &Barrier) -> bool {
    let (view, mut reader) = (store.view(), Reader::new().unwrap());
    begin.wait();
    let failure = block_on(view.read_header(&mut reader, BlockNumber(3))).unwrap_err();
    assert!(failure.is_of_file(), "{failure}");
    store.pass_over_faulty() || !Arc::ptr_eq(&view, &store.view())
}

/// Seen: a request was refused as an internal error while another thread was about to show the view
/// without the file.
#[test]
fn whoever_meets_a_missing_file_beside_another_is_shown_the_view_without_it() {
    let mut shelf = Shelf::new(range(0, 511));
    shelf.bring(&[whole(0, 511)]).unwrap();
    let gone = shelf.view().manifest().segments()[0].file_name.clone();
    let bytes = shelf.disk.read(&gone, 1 << 30).unwrap();
    for round in 0..ROUNDS {
        let store = open_store(&shelf.disk, Limits::default()).unwrap();
        store.pass_over_missing().unwrap();
        shelf.disk.remove(&gone).unwrap();
        let begin = Barrier::new(3);
        let found = thread::scope(|scope| {
            let asking = [(); 3].map(|()| scope.spawn(|| may_ask_again(&store, &begin)));
            asking.map(|thread| thread.join().unwrap())
        });
        assert_eq!(found, [true; 3], "round {round}");
        shelf.disk.write(&gone, &bytes).unwrap();
    }
}
