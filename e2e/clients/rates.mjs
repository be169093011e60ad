// Load beyond a rate, and beside it a caller that is not limited.
//
// usage: node rates.mjs URL LIMITED_KEY RATE FREE_KEY SECONDS
import https from 'node:https'

const [url, limited, rateText, free, secondsText] = process.argv.slice(2)
const [rate, seconds] = [Number(rateText), Number(secondsText)]
const agent = new https.Agent({ keepAlive: true })
const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId' })

function ask(key) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length, 'x-api-key': key }
    const request = https.request(url, { agent, method: 'POST', headers }, (answer) => {
      let text = ''
      answer.on('data', (part) => { text += part })
      answer.on('end', () => resolve({ status: answer.statusCode, after: answer.headers['retry-after'], text }))
    })
    request.on('error', reject)
    request.end(body)
  })
}

const counts = { limited: {}, free: {} }
const begun = performance.now()
const elapsed = () => (performance.now() - begun) / 1000
async function load(name, key) {
  while (elapsed() < seconds) {
    const { status, after, text } = await ask(key)
    counts[name][status] = (counts[name][status] ?? 0) + 1
    const isTold = status !== 429 || (Number(after) >= 1 && JSON.parse(text).error.code === -32005)
    if (!isTold) throw new Error(`429 without a word: ${after} ${text}`)
  }
}
await Promise.all([...Array.from({ length: 8 }, () => load('limited', limited)), ...Array.from({ length: 2 }, () => load('free', free))])
const time = elapsed()
const [allowed, refused] = [counts.limited[200] ?? 0, counts.limited[429] ?? 0]
console.log(`${allowed} of ${allowed + refused} calls in ${time.toFixed(1)} s at ${rate} a second; beside it ${JSON.stringify(counts.free)}`)
// A second's worth at once, and from then on the rate; some may have been on their way at the end.
const isWithin = allowed <= rate * (time + 1) + 1 && allowed >= rate * (seconds - 1)
const isFree = Object.keys(counts.free).join() === '200'
process.exit(isWithin && refused > 0 && isFree ? 0 : 1)
