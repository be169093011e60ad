// viem, unmodified, with an API key: in a header, in the path and over WebSocket; without one;
// and with a key that allows few calls a second, on which viem asks again by itself.
//
// usage: node keyed_viem.mjs URL KEY LIMITED_KEY
import { createPublicClient, http, webSocket } from 'viem'

const [url, key, limited] = process.argv.slice(2)
const client = (transport) => createPublicClient({ transport })
const header = (key) => ({ fetchOptions: { headers: { authorization: `Bearer ${key}` } } })
const socket = url.replace(/^http/, 'ws')
let faults = 0

function hold(what, found, expected) {
  if (found === expected) return console.log(`${what}: ${found}`)
  faults += 1
  console.log(`FAULT: ${what}: found ${found}, expected ${expected}`)
}

const number = await client(http(url, header(key))).getBlockNumber()
hold('header', number > 0n, true)
hold('path', await client(http(`${url}/v1/${key}`)).getBlockNumber(), number)
const overSocket = client(webSocket(`${socket}/v1/${key}`, { reconnect: false }))
hold('socket', await overSocket.getBlockNumber(), number)
// viem gives the message of the JSON-RPC error, not the HTTP status.
for (const [what, transport] of [['no key', http(url)], ['a wrong key', http(url, header('qk_wrong'))]]) {
  const refused = await client(transport).getBlockNumber().catch((error) => error)
  hold(what, refused.details?.split(':')[0], 'unauthorized')
}
const unopened = await client(webSocket(`${socket}/v1/qk_wrong`, { reconnect: false, retryCount: 0, timeout: 3000 }))
  .getBlockNumber()
  .catch((error) => error)
hold('a socket with a wrong key', unopened instanceof Error, true)
// More at once than a second allows: viem waits as Retry-After says.
const patient = client(http(url, { ...header(limited), retryCount: 20 }))
const answers = await Promise.all(Array.from({ length: 12 }, () => patient.getChainId()))
hold('calls beyond the rate', answers.length, 12)
process.exit(faults === 0 ? 0 : 1)
