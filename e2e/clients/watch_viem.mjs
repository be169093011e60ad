// viem, unmodified: watchEvent over WebSocket, and over HTTP, where it polls a filter.
//
// usage: node watch_viem.mjs URL filters.json SOCKET
//
// Prints what it watches when the server has confirmed all of it, and then each log that comes.
import fs from 'node:fs'
import { createPublicClient, http, toEventSelector, webSocket } from 'viem'
import { expected, plain, url } from './agree.mjs'

const abi = JSON.parse(fs.readFileSync(new URL('events.json', import.meta.url)))
const transports = { http: http(url, { retryCount: 0 }), ws: webSocket(process.argv[4], { retryCount: 0 }) }
const watching = []
let confirmed = 0

// The same transport, but it counts the subscriptions and the filters that the server has confirmed. viem
// falls back to ranges without a word if a filter is refused.
const counting = (transport) => (options) => {
  const inner = transport(options)
  const confirm = (answer) => {
    confirmed += 1
    return answer
  }
  return {
    ...inner,
    request: async (call) => {
      const answer = await inner.request(call)
      return call.method === 'eth_newFilter' ? confirm(answer) : answer
    },
    value: { ...inner.value, subscribe: async (asked) => confirm(await inner.value.subscribe(asked)) },
  }
}

// A query as viem says it, or nothing if it cannot.
function said({ filter: { address, topics }, event, args }) {
  const at = address ? { address } : {}
  // viem holds what it decodes against the arguments, and decodes numbers as bigints.
  if (event) return { ...at, event: abi.find(({ name }) => name === event), args: { ...args, ...(args.id && { id: BigInt(args.id) }) } }
  if (!topics) return at
  if (topics.length > 1) return undefined
  return { ...at, events: abi.filter((item) => [topics[0]].flat().includes(toEventSelector(item))) }
}

for (const query of expected.queries) {
  const asked = said(query)
  if (!asked) continue
  for (const [over, transport] of Object.entries(transports)) {
    const { name } = query
    watching.push({ name, over })
    // One client for each: over HTTP, viem takes lists of events for the same if all else is.
    createPublicClient({ transport: counting(transport), pollingInterval: 100 }).watchEvent({
      ...asked,
      onLogs: (logs) => {
        for (const { args, eventName, ...log } of logs) console.log(JSON.stringify({ name, over, log: plain(log) }))
      },
      onError: (error) => {
        console.error(`${name} over ${over}: ${error}`)
        process.exit(1)
      },
    })
  }
}
while (confirmed < watching.length) await new Promise((resolve) => setTimeout(resolve, 20))
console.log(JSON.stringify({ watching }))
