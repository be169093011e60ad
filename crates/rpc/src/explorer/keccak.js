// Hashes: Ethereum's Keccak-256, and SHA-256 as SSZ merges with it.
//
// Knows: bytes in, 32 bytes out, and how bytes are written in hex.
// Never knows: what is hashed. `crypto.subtle` has no Keccak, and no SHA-256 either for a page that came
// over plain HTTP from another machine: so both are here.

const ROUNDS = 24;
/** Bytes that a permutation of Keccak-256 takes in. */
const RATE_BYTES = 136;

// Lanes of 64 bits are pairs of 32: the lower half first. Numbers of 64 bits (BigInt) are far slower.
const ROUND_CONSTANTS = new Int32Array(2 * ROUNDS);
const ROTATIONS = new Uint8Array(ROUNDS);
const LANES = new Uint8Array(ROUNDS);
fillTables();

/** The tables follow from their definition in FIPS 202, 3.2.2 to 3.2.5. */
function fillTables() {
  let lfsr = 1;
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let power = 0; power < 7; power += 1) {
      const bit = 2 ** power - 1;
      if (lfsr & 1) {
        ROUND_CONSTANTS[2 * round + (bit >> 5)] |= 1 << (bit & 31);
      }
      lfsr = (lfsr << 1) ^ ((lfsr >> 7) * 0x171);
    }
  }
  for (let step = 0, x = 1, y = 0; step < ROUNDS; step += 1) {
    [x, y] = [y, (2 * x + 3 * y) % 5];
    LANES[step] = 2 * (x + 5 * y);
    ROTATIONS[step] = (((step + 1) * (step + 2)) / 2) % 64;
  }
}

/** The parity of each column. */
const columns = new Int32Array(10);

/** Keccak-f[1600] on 25 lanes. Remainders and lists in its loops would halve its speed. */
function permute(state) {
  for (let round = 0; round < 2 * ROUNDS; round += 2) {
    // Theta: each lane takes in the parity of two columns.
    for (let x = 0; x < 10; x += 1) {
      columns[x] = state[x] ^ state[x + 10] ^ state[x + 20] ^ state[x + 30] ^ state[x + 40];
    }
    for (let x = 0; x < 10; x += 2) {
      const before = x === 0 ? 8 : x - 2;
      const after = x === 8 ? 0 : x + 2;
      const afterLow = columns[after];
      const afterHigh = columns[after + 1];
      const mixedLow = columns[before] ^ ((afterLow << 1) | (afterHigh >>> 31));
      const mixedHigh = columns[before + 1] ^ ((afterHigh << 1) | (afterLow >>> 31));
      for (let lane = x; lane < 50; lane += 10) {
        state[lane] ^= mixedLow;
        state[lane + 1] ^= mixedHigh;
      }
    }
    // Rho and pi: each lane is rotated and takes the place of the next.
    let low = state[2];
    let high = state[3];
    for (let step = 0; step < ROUNDS; step += 1) {
      const lane = LANES[step];
      const by = ROTATIONS[step];
      // By 32 and more, the halves change places. No rotation is by 0 or 32.
      const first = by < 32 ? low : high;
      const second = by < 32 ? high : low;
      low = state[lane];
      high = state[lane + 1];
      // The engine takes shifts modulo 32.
      state[lane] = (first << by) | (second >>> -by);
      state[lane + 1] = (second << by) | (first >>> -by);
    }
    // Chi: the only step that is not linear. Each row is in variables: that is what makes it fast.
    for (let lane = 0; lane < 50; lane += 10) {
      const low0 = state[lane];
      const high0 = state[lane + 1];
      const low1 = state[lane + 2];
      const high1 = state[lane + 3];
      const low2 = state[lane + 4];
      const high2 = state[lane + 5];
      const low3 = state[lane + 6];
      const high3 = state[lane + 7];
      const low4 = state[lane + 8];
      const high4 = state[lane + 9];
      state[lane] = low0 ^ (~low1 & low2);
      state[lane + 1] = high0 ^ (~high1 & high2);
      state[lane + 2] = low1 ^ (~low2 & low3);
      state[lane + 3] = high1 ^ (~high2 & high3);
      state[lane + 4] = low2 ^ (~low3 & low4);
      state[lane + 5] = high2 ^ (~high3 & high4);
      state[lane + 6] = low3 ^ (~low4 & low0);
      state[lane + 7] = high3 ^ (~high4 & high0);
      state[lane + 8] = low4 ^ (~low0 & low1);
      state[lane + 9] = high4 ^ (~high0 & high1);
    }
    // Iota.
    state[0] ^= ROUND_CONSTANTS[round];
    state[1] ^= ROUND_CONSTANTS[round + 1];
  }
}

/** Keccak-256 as Ethereum uses it, with the padding from before SHA-3. */
export function keccak256(bytes) {
  const state = new Int32Array(50);
  const whole = bytes.length - (bytes.length % RATE_BYTES);
  for (let at = 0; at < whole; at += RATE_BYTES) {
    absorb(state, bytes, at);
  }
  const last = new Uint8Array(RATE_BYTES);
  last.set(bytes.subarray(whole));
  last[bytes.length - whole] = 0x01;
  last[RATE_BYTES - 1] |= 0x80;
  absorb(state, last, 0);
  const hash = new Uint8Array(32);
  for (let at = 0; at < 32; at += 1) {
    hash[at] = state[at >> 2] >>> (8 * (at & 3));
  }
  return hash;
}

function absorb(state, bytes, at) {
  for (let word = 0; word < RATE_BYTES / 4; word += 1, at += 4) {
    state[word] ^= bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
  }
  permute(state);
}

const SHA_INITIAL = new Int32Array(8);
const SHA_CONSTANTS = new Int32Array(64);
fillShaTables();

/** FIPS 180-4: the first 32 bits behind the point of the roots of the first primes. */
function fillShaTables() {
  const fraction = (number) => Math.floor((number % 1) * 2 ** 32);
  let count = 0;
  for (let candidate = 2; count < 64; candidate += 1) {
    let divisor = 2;
    while (candidate % divisor !== 0) {
      divisor += 1;
    }
    if (divisor < candidate) {
      continue;
    }
    if (count < 8) {
      SHA_INITIAL[count] = fraction(Math.sqrt(candidate));
    }
    SHA_CONSTANTS[count] = fraction(Math.cbrt(candidate));
    count += 1;
  }
}

const rotate = (word, by) => (word >>> by) | (word << (32 - by));
const schedule = new Int32Array(64);

/** SHA-256. */
export function sha256(bytes) {
  const padded = new Uint8Array((bytes.length + 9 + 63) & ~63);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, bytes.length << 3);
  const state = SHA_INITIAL.slice();
  for (let at = 0; at < padded.length; at += 64) {
    compress(state, view, at);
  }
  const hash = new DataView(new ArrayBuffer(32));
  state.forEach((word, place) => hash.setInt32(4 * place, word));
  return new Uint8Array(hash.buffer);
}

function compress(state, view, at) {
  for (let place = 0; place < 64; place += 1) {
    if (place < 16) {
      schedule[place] = view.getInt32(at + 4 * place);
      continue;
    }
    const [early, late] = [schedule[place - 15], schedule[place - 2]];
    const small = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
    const large = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
    schedule[place] = schedule[place - 16] + small + schedule[place - 7] + large;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let place = 0; place < 64; place += 1) {
    const large = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    const choice = (e & f) ^ (~e & g);
    const first = (h + large + choice + SHA_CONSTANTS[place] + schedule[place]) | 0;
    const second = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, place) => {
    state[place] += word;
  });
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** Bytes as `0x` and two lowercase digits for each. */
export function toHex(bytes) {
  let text = "0x";
  for (const byte of bytes) {
    text += HEX[byte];
  }
  return text;
}

/** Whether both have the same bytes. */
export function isEqual(one, other) {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}
