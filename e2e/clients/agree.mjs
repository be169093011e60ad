// Holds what a client library gives against what was expected.
//
// Knows: that libraries give numbers as bigints and addresses with a checksum.
// Never knows: which library it was.
import fs from 'node:fs'

export const ABSENT_HASH = '0x' + '11'.repeat(32)

export const url = process.argv[2]
export const expected = JSON.parse(fs.readFileSync(process.argv[3]))

let compared = 0
let differences = 0

// A library's value in the form of the wire.
export function plain(value) {
  if (typeof value === 'bigint' || typeof value === 'number') return '0x' + value.toString(16)
  if (typeof value === 'string') return value.toLowerCase()
  if (Array.isArray(value)) return value.map(plain)
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]))
  }
  return value ?? null
}

function differ(path, found, wanted) {
  differences += 1
  if (differences > 20) return
  console.log(`${path}: found ${JSON.stringify(found)}, expected ${JSON.stringify(wanted)}`)
}

// Every member that was expected must be there with its value, except those of `unseen`, which the
// library does not hand on.
export function agree(path, found, wanted, unseen = []) {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(found) || found.length !== wanted.length) return differ(path, found, wanted)
    wanted.forEach((item, index) => agree(`${path}.${index}`, found[index], item, unseen))
  } else if (wanted && typeof wanted === 'object') {
    if (!found || typeof found !== 'object') return differ(path, found, wanted)
    for (const [name, item] of Object.entries(wanted)) {
      if (!unseen.includes(name)) agree(`${path}.${name}`, found[name], item, unseen)
    }
  } else {
    compared += 1
    if ((found ?? null) !== wanted) differ(path, found, wanted)
  }
}

// Runs `ask` for every item, some at a time.
export async function each(items, ask) {
  const waiting = [...items.entries()]
  const work = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) await ask(next[1], next[0])
  }
  await Promise.all(Array.from({ length: 8 }, work))
}

export function conclude() {
  console.log(`${compared} values compared, ${differences} differ`)
  process.exit(differences === 0 && compared > 0 ? 0 : 1)
}
