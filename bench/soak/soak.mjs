// The load of a soak, and what is measured meanwhile.
//
// usage: node soak.mjs URL KEY AUTHORITY METRICS NODE PROCESS LAST_BLOCK MINUTES CSV
//
// A row each ten seconds. Fails if a request did, if a subscriber misses blocks, if the server is behind its
// node at the end, or if memory, descriptors or latency are more in the last fifth than in the second one,
// when all caches are warm.
import fs from 'node:fs'
import { WebSocket } from 'ws'
import { ask, hex } from './ask.mjs'
import { callers } from './callers.mjs'
import { takeOver } from './transact.mjs'

const [url, key, authority, metrics, node, server, lastText, minutesText, csv] = process.argv.slice(2)
const [last, minutes] = [Number(lastText), Number(minutesText)]
const ca = fs.readFileSync(authority)
const ROW_MS = 10_000
const CALLERS_OF_EACH_KIND = 3
const PAUSE_MS = 10
// What may come by chance, between two fifths of the time.
const GROWTH_MAX = 1.1
const DESCRIPTORS_MORE_MAX = 16
const SLOWER_MAX = 2

const begun = performance.now()
const elapsedMinutes = () => (performance.now() - begun) / 60_000
const isOver = () => elapsedMinutes() >= minutes
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const failures = []
let latencies = []
let answerCount = 0

function fail(what) {
  failures.push(what)
  console.log(`FAULT at ${elapsedMinutes().toFixed(1)} min: ${what}`)
  if (failures.length > 50) process.exit(1)
}

// --- what is asked

/// Calls about one block, each with what its answer must have.
function callsAbout(block) {
  const [number, transaction] = [block.number, block.transactions[0]]
  const found = (member, value) => (result) => result?.[member] === value
  const calls = [
    ['eth_getBlockByNumber', [number, true], found('hash', block.hash)],
    ['eth_getBlockByHash', [block.hash, false], found('number', number)],
    ['eth_getLogs', [{ fromBlock: hex(Math.max(Number(number) - 200, 0)), toBlock: number }], (result) => result?.at(-1)?.blockHash === block.hash],
  ]
  if (transaction !== undefined) {
    calls.push(['eth_getTransactionByHash', [transaction], found('blockHash', block.hash)])
    calls.push(['eth_getTransactionReceipt', [transaction], found('transactionHash', transaction)])
    calls.push(['eth_getTransactionByBlockNumberAndIndex', [number, '0x0'], found('hash', transaction)])
    calls.push(['eth_getTransactionByBlockHashAndIndex', [block.hash, '0x0'], found('hash', transaction)])
  }
  return calls
}

/// One call, or all about a block as a batch.
function bodyOf(calls, round) {
  const asked = round % 10 === 0 ? calls : [calls[round % calls.length]]
  const bodies = asked.map(([method, params], id) => ({ jsonrpc: '2.0', id, method, params }))
  const isRight = (text) => {
    const answers = [JSON.parse(text)].flat()
    return answers.length === asked.length && asked.every(([, , isExpected], id) => isExpected(answers.find((it) => it.id === id)?.result))
  }
  return { body: JSON.stringify(asked.length === 1 ? bodies[0] : bodies), isRight }
}

async function askOn(name, caller, calls) {
  for (let round = 0; !isOver(); round += 1) {
    const { body, isRight } = bodyOf(calls[Math.floor(Math.random() * calls.length)], round)
    const sent = performance.now()
    try {
      const text = await caller(`${name}-${round}`, body)
      latencies.push(performance.now() - sent)
      answerCount += 1
      if (!isRight(text)) fail(`${name}: ${body} was answered with ${text.slice(0, 300)}`)
    } catch (error) {
      fail(`${name}: ${error.code ?? ''} ${error.message}`)
      await pause(1000)
    }
    await pause(PAUSE_MS)
  }
}

// --- sockets that are told of new blocks

function subscribe() {
  const told = { heads: new Set(), logs: 0 }
  const socket = new WebSocket(`${url.replace('https:', 'wss:')}/v1/${key}`, { ca })
  socket.on('open', () => {
    for (const [id, params] of [['newHeads'], ['logs', {}]].entries()) socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_subscribe', params }))
  })
  socket.on('message', (text) => {
    const result = JSON.parse(text).params?.result
    if (result?.topics !== undefined) told.logs += 1
    else if (result?.hash !== undefined) told.heads.add(result.hash)
  })
  socket.on('error', (error) => fail(`subscribed socket: ${error.message}`))
  socket.on('close', (code) => isOver() || fail(`subscribed socket: closed with ${code}`))
  return { socket, told }
}

// --- the node's chain

const minedHashes = []
let reorgCount = 0
async function grow(caller) {
  const send = await takeOver(node)
  for (let second = 1; !isOver(); second += 1) {
    await send(4)
    await ask(node, 'anvil_mine', '0x1')
    const { hash } = await ask(node, 'eth_getBlockByNumber', 'latest', false)
    await pause(1000)
    // A second later everybody knows it.
    const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'eth_getBlockByHash', params: [hash, true] })
    const found = await caller(`tip-${second}`, body).then((text) => JSON.parse(text).result?.hash, (error) => error.message)
    if (found === hash) minedHashes.push(hash)
    else fail(`a block of the node is not there after a second: ${found}`)
    if (second % 60 === 0) {
      await ask(node, 'anvil_reorg', 3, [])
      reorgCount += 1
    }
  }
}

// --- what is measured

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
const rows = []

function megabytes(member) {
  const line = fs.readFileSync(`/proc/${server}/status`, 'utf8').split('\n').find((it) => it.startsWith(`${member}:`))
  return Number(line.match(/\d+/)[0]) / 1000
}

async function measure() {
  const columns = 'minutes,resident memory in MB:all,resident memory in MB:not of files,open descriptors:descriptors,latency in ms:median,latency in ms:99 of 100,requests/s:requests'
  fs.writeFileSync(csv, `${columns}\n`)
  while (!isOver()) {
    const [from, before] = [performance.now(), answerCount]
    latencies = []
    await pause(ROW_MS)
    const seconds = (performance.now() - from) / 1000
    const sorted = latencies.toSorted((a, b) => a - b)
    const row = [
      elapsedMinutes(), megabytes('VmRSS'), megabytes('RssAnon'), fs.readdirSync(`/proc/${server}/fd`).length,
      median(sorted), sorted[Math.floor(sorted.length * 0.99)] ?? 0, (answerCount - before) / seconds,
    ]
    rows.push(row)
    fs.appendFileSync(csv, `${row.map((value) => value.toFixed(2)).join()}\n`)
    const page = await fetch(metrics).then((answer) => answer.text()).catch((error) => fail(`metrics: ${error.message}`))
    if (!page?.includes('quipu_build_info')) fail(`metrics: ${page?.slice(0, 200)}`)
  }
}

/// The median of a column in one fifth of the rows.
function inFifth(column, fifth) {
  const [from, to] = [fifth, fifth + 1].map((it) => Math.floor((rows.length * it) / 5))
  return median(rows.slice(from, to).map((row) => row[column]))
}

const numbers = Array.from({ length: 400 }, (_, index) => Math.floor((last * (index + 1)) / 400))
const blocks = await Promise.all(numbers.map((number) => ask(node, 'eth_getBlockByNumber', hex(number), false)))
const calls = blocks.filter((block) => block.transactions.length > 0).map(callsAbout)
// The server may be taking the node's blocks still.
const first = callers(url, key, ca).kept
for (let tries = 0; ; tries += 1) {
  const answers = await Promise.all([calls[0], calls.at(-1)].map((about) => first('first', bodyOf(about, 0).body).then(bodyOf(about, 0).isRight, () => false)))
  if (answers.every(Boolean)) break
  if (tries > 600) throw new Error('the server does not have the blocks of its node')
  await pause(100)
}

const subscribers = [subscribe(), subscribe()]
const asking = Array.from({ length: CALLERS_OF_EACH_KIND }, (_, which) => Object.entries(callers(url, key, ca)).map(([way, caller]) => askOn(`${way}${which}`, caller, calls))).flat()
await Promise.all([...asking, grow(callers(url, key, ca).http2), measure()])

const tip = await ask(node, 'eth_getBlockByNumber', 'latest', false)
const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'eth_getBlockByNumber', params: [tip.number, false] })
let isAtTip = false
for (let tries = 0; tries < 100 && !isAtTip; tries += 1) {
  isAtTip = JSON.parse(await first('tip', body)).result?.hash === tip.hash
  if (!isAtTip) await pause(100)
}
if (!isAtTip) fail(`block ${tip.number} is not there`)
for (const { socket } of subscribers) socket.terminate()

const [memory, memoryEnd, descriptors, descriptorsEnd] = [inFifth(2, 1), inFifth(2, 4), inFifth(3, 1), inFifth(3, 4)]
if (memoryEnd > memory * GROWTH_MAX) fail(`memory has grown from ${memory} to ${memoryEnd} MB`)
if (descriptorsEnd > descriptors + DESCRIPTORS_MORE_MAX) fail(`descriptors have grown from ${descriptors} to ${descriptorsEnd}`)
const [p99, p99End] = [inFifth(5, 1), inFifth(5, 4)]
if (p99End > p99 * SLOWER_MAX) fail(`99 of 100 answers came within ${p99} ms, and within ${p99End} ms at the end`)
for (const { told } of subscribers) {
  const missed = minedHashes.filter((hash) => !told.heads.has(hash))
  if (missed.length > 0 || told.logs === 0) fail(`${missed.length} of ${minedHashes.length} blocks were not told, and ${told.logs} logs`)
}
console.log(`${answerCount} requests, ${failures.length} failed; ${minedHashes.length} new blocks told to each subscriber, ${reorgCount} reorgs`)
console.log(`memory that is not of files: ${memory.toFixed(1)} MB in the second fifth, ${memoryEnd.toFixed(1)} in the last; all: ${inFifth(1, 1).toFixed(1)}, ${inFifth(1, 4).toFixed(1)}`)
console.log(`descriptors: ${descriptors}, ${descriptorsEnd}`)
console.log(`latency, median: ${inFifth(4, 1).toFixed(2)} ms, ${inFifth(4, 4).toFixed(2)}; 99 of 100: ${inFifth(5, 1).toFixed(2)} ms, ${inFifth(5, 4).toFixed(2)}`)
process.exit(failures.length === 0 ? 0 : 1)
