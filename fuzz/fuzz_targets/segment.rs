//! A segment of arbitrary bytes is refused, or every row and header in it is read or refused.

#![no_main]

use std::ops::Range;

use libfuzzer_sys::fuzz_target;
use segment::{FOOTER_BYTES, Footer, Inflater, RowParts, RowsRoom, Segment, TxOrdinal};

fuzz_target!(|data: &[u8]| {
    let Some(start) = data.len().checked_sub(FOOTER_BYTES) else { return };
    let Ok(footer) = Footer::parse(&data[start..]) else { return };
    let Ok(tail) = footer.tail_range(data.len() as u64) else { return };
    let Ok(mut inflater) = Inflater::new() else { return };
    let inflater = &mut inflater;
    let Ok(segment) = Segment::open(footer, inflater, slice(data, &tail)) else { return };
    let facts = *segment.facts();
    for ordinal in (0..facts.transaction_count.min(64)).map(TxOrdinal) {
        let Some(place) = segment.find_row(ordinal) else { continue };
        let page = slice(data, &place.page.range);
        let room = &mut RowsRoom::default();
        // Receipts of every other row are passed over.
        let wanted = if ordinal.get() % 2 == 0 { RowParts::Receipt } else { RowParts::Transaction };
        let opened = segment.open_rows(inflater, &place.page, page, room, wanted);
        let Ok(rows) = opened else { continue };
        let _ = segment.position_of(&place, &rows);
        let payloads = slice(data, &segment.find_payloads(&place, &rows));
        if let Ok(row) = segment.read_row(inflater, &place, &rows, payloads) {
            let _ = chain::TxFields::read(row.view().encoded);
        }
    }
    let _ = segment.part_bytes();
    for number in facts.range.numbers().take(64) {
        if let Some(place) = segment.find_block(number) {
            let bytes = slice(data, &place.range);
            let hashes = segment.read_hashes(inflater, &place, bytes);
            if let Ok(rows) = segment.read_block(inflater, &place, bytes, RowParts::Receipt) {
                let _ = rows.blooms();
                assert_eq!(hashes.expect("less is read for them"), rows.hashes());
            }
        }
        if let Some(place) = segment.find_header(number) {
            let _ = segment.read_header(inflater, &place, slice(data, &place.range), number);
        }
        if let Some(place) = segment.find_extras(number) {
            let _ = segment.read_extras(inflater, &place, slice(data, &place.range), number);
        }
    }
});

/// What a short read would give: nothing outside the file.
fn slice<'a>(data: &'a [u8], range: &Range<u64>) -> &'a [u8] {
    data.get(range.start as usize..range.end as usize).unwrap_or_default()
}
