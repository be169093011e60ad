// A contract that writes whatever logs it is told to.

// Writes the logs that its call data says: a byte with the number of topics, a byte with the number of
// logs, four words for topics, and the data. Assembled from a jump for each number of topics to
//   PUSH1 2 CALLDATALOAD ... PUSH1 130 CALLDATASIZE SUB PUSH0 LOG<topics>
// in a loop over the number of logs.
export const EMITTER =
    "0x60a88060095f395ff36082360360825f375f3560f01c60ff165b801560a6575f3560f81c600014604e575f3560f81c" +
    "6001146058575f3560f81c6002146065575f3560f81c6003146075575f3560f81c600414608857005b608236035fa060" +
    "9e565b600235608236035fa1609e565b602235600235608236035fa2609e565b604235602235600235608236035fa360" +
    "9e565b606235604235602235600235608236035fa4609e565b600190036010565b00";

export const word = (value) => BigInt(value).toString(16).padStart(64, "0");

// The call data for so many logs with these topics and this data, which is hex without a prefix.
export function emission(topics, data, count = 1) {
    const words = Array.from({ length: 4 }, (_, index) => word(topics[index] ?? 0)).join("");
    const head = [topics.length, count].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return `0x${head}${words}${data}`;
}
