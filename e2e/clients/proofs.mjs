// @ethereumjs/mpt, unmodified: the paths of proof bundles, a bundle on each line.
//
// usage: node proofs.mjs BUNDLES
import { verifyMerkleProof } from "@ethereumjs/mpt";
import { RLP } from "@ethereumjs/rlp";
import { readFileSync } from "node:fs";
import { bytesToHex, hexToBytes, keccak256 } from "viem";

const TRANSACTIONS_ROOT = 4;
const RECEIPTS_ROOT = 5;

async function verifyPath(path, root) {
    const proof = path.proof.map((node) => hexToBytes(node));
    if (keccak256(proof[0], "hex") !== root) {
        throw new Error("the path begins at another root");
    }
    const value = await verifyMerkleProof(RLP.encode(path.index), proof, { root: hexToBytes(root) });
    if (value === null || bytesToHex(value) !== path.rlp) {
        throw new Error(`another value is at index ${path.index}`);
    }
}

let paths = 0;
const lines = readFileSync(process.argv[2], "utf8").split("\n").filter((line) => line !== "");
for (const [position, line] of lines.entries()) {
    const bundle = JSON.parse(line);
    const header = RLP.decode(bundle.header);
    try {
        await verifyPath(bundle.transaction, bytesToHex(header[TRANSACTIONS_ROOT]));
        paths += 1;
        if (bundle.receipt) {
            await verifyPath(bundle.receipt, bytesToHex(header[RECEIPTS_ROOT]));
            paths += 1;
        }
    } catch (error) {
        console.error(`bundle ${position}: ${error.message}`);
        process.exit(1);
    }
}
console.log(`${lines.length} bundles, ${paths} paths verified`);
