//! Small images of up to 256 colours, as data URLs of PNG files.
//!
//! A heatmap of a thousand cells is one image with one byte per cell instead of a thousand rectangles. The
//! pixels are stored without compression, so that the bytes depend only on the pixels and not on a
//! compressor.

/// The index of the last colour of a heatmap's scale; the first has the index 0.
pub const LEVELS: usize = 254;

/// The index of hidden cells in the palette.
pub const HIDDEN: u8 = 255;

/// An image of indices into a palette, rows from top to bottom, as `data:image/png;base64,...`.
pub fn data(width: usize, height: usize, pixels: &[u8], palette: &[[u8; 3]]) -> String {
    let mut file = vec![0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];
    let mut head = Vec::new();
    head.extend(u32::try_from(width).unwrap_or(0).to_be_bytes());
    head.extend(u32::try_from(height).unwrap_or(0).to_be_bytes());
    // Eight bits per pixel, with a palette; the other bytes select the only methods of compression and
    // filtering, and no interlacing.
    head.extend([8, 3, 0, 0, 0]);
    chunk(&mut file, b"IHDR", &head);
    let colors: Vec<u8> = palette.iter().flatten().copied().collect();
    chunk(&mut file, b"PLTE", &colors);
    let mut rows = Vec::with_capacity((width + 1) * height);
    for row in pixels.chunks(width.max(1)).take(height) {
        // Each row begins with its filter; 0 is none.
        rows.push(0);
        rows.extend_from_slice(row);
    }
    chunk(&mut file, b"IDAT", &stored(&rows));
    chunk(&mut file, b"IEND", &[]);
    format!("data:image/png;base64,{}", base64(&file))
}

fn chunk(file: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    file.extend(u32::try_from(data.len()).unwrap_or(0).to_be_bytes());
    let start = file.len();
    file.extend_from_slice(kind);
    file.extend_from_slice(data);
    let sum = crc32(file.get(start..).unwrap_or_default());
    file.extend(sum.to_be_bytes());
}

/// A zlib stream of stored blocks (RFC 1950, RFC 1951).
fn stored(data: &[u8]) -> Vec<u8> {
    // Deflate with a window of 32 KiB; the second byte makes both a multiple of 31, as the format asks.
    let mut out = vec![0x78, 0x01];
    // A stored block gives its length in 16 bits.
    let mut blocks = data.chunks(0xffff).peekable();
    if blocks.peek().is_none() {
        // Even an empty stream has a last block.
        out.extend([1, 0, 0, 0xff, 0xff]);
    }
    while let Some(block) = blocks.next() {
        out.push(u8::from(blocks.peek().is_none()));
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        out.extend(length.to_le_bytes());
        // The length once more with all bits inverted, by which readers notice a damaged block.
        out.extend((!length).to_le_bytes());
        out.extend_from_slice(block);
    }
    out.extend(adler32(data).to_be_bytes());
    out
}

/// The checksum of zlib streams (RFC 1950); 65521 is the largest prime below 2^16.
fn adler32(data: &[u8]) -> u32 {
    let step = |(a, b): (u32, u32), byte: &u8| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (a + b) % 65521)
    };
    let (a, b) = data.iter().fold((1, 0), step);
    b << 16 | a
}

/// The checksum of PNG chunks, as in ISO 3309.
fn crc32(data: &[u8]) -> u32 {
    // Bit by bit, without a table: an image has at most 256 × 256 pixels.
    !data.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(
            sum ^ u32::from(*byte),
            |sum, _| {
                if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 }
            },
        )
    })
}

/// Bytes in base64, with padding (RFC 4648).
pub fn base64(data: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(data.len().div_ceil(3) * 4);
    for three in data.chunks(3) {
        let byte = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        // One byte gives two letters, two bytes give three; the rest of a group of four is padding.
        for i in 0..4u32 {
            let letter = LETTERS.get((bits >> (18 - 6 * i) & 63) as usize).copied().unwrap_or(b'=');
            out.push(if i as usize <= three.len() { char::from(letter) } else { '=' });
        }
    }
    out
}
