// Callers of a server over TLS, each with a key and a way of its own to connect: one connection for all
// requests or for each, HTTP/2, and WebSocket. They try nothing again, and give up after half a minute.
import http2 from 'node:http2'
import https from 'node:https'
import { WebSocket } from 'ws'

/// The text of the answer to one request, over HTTP/1.1.
function overHttp1(url, headers, agent) {
  return (id, body) => new Promise((resolve, reject) => {
    const request = https.request(url, { agent, method: 'POST', headers: { ...headers, 'x-request-id': id } }, (answer) => {
      let text = ''
      answer.on('data', (part) => { text += part })
      answer.on('error', reject)
      answer.on('end', () => {
        if (answer.statusCode === 200 && answer.complete) resolve(text)
        else reject(new Error(`${answer.statusCode}, whole: ${answer.complete}, ${text.slice(0, 200)}`))
      })
    })
    request.on('error', reject)
    request.end(body)
  })
}

function overHttp2(url, headers, ca) {
  let session
  return (id, body) => new Promise((resolve, reject) => {
    if (session === undefined || session.closed || session.destroyed) {
      session = http2.connect(url, { ca })
      session.on('error', reject)
    }
    const stream = session.request({ ...headers, ':method': 'POST', 'x-request-id': id })
    let status
    let text = ''
    stream.on('response', (answer) => { status = answer[':status'] })
    stream.on('data', (part) => { text += part })
    stream.on('error', reject)
    stream.on('close', () => {
      if (status === 200 && stream.rstCode === 0) resolve(text)
      else reject(new Error(`${status}, reset with ${stream.rstCode}, ${text.slice(0, 200)}`))
    })
    stream.end(body)
  })
}

function overSocket(url, key, ca) {
  let socket
  return (id, body) => new Promise((resolve, reject) => {
    const isNew = socket === undefined || socket.readyState > WebSocket.OPEN
    if (isNew) socket = new WebSocket(`${url.replace('https:', 'wss:')}/v1/${key}`, { ca })
    // One request at a time: the next message is its answer.
    const asked = socket
    asked.removeAllListeners()
    asked.on('message', (text) => resolve(text.toString()))
    asked.on('error', reject)
    asked.on('close', (code) => reject(new Error(`closed with ${code}`)))
    if (isNew) asked.on('open', () => asked.send(body))
    else asked.send(body)
  })
}

const PATIENCE_MS = 30_000

/// The same caller, which fails when it is not answered for long.
function patient(caller) {
  return (id, body) => {
    let timer
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in half a minute')), PATIENCE_MS)
    })
    return Promise.race([caller(id, body), late]).finally(() => clearTimeout(timer))
  }
}

/// Callers by the name of their way; each takes an id and a body, and is to be called one at a time.
export function callers(url, key, ca) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` }
  return {
    kept: patient(overHttp1(url, headers, new https.Agent({ ca, keepAlive: true }))),
    fresh: patient(overHttp1(url, headers, new https.Agent({ ca, maxCachedSessions: 0 }))),
    http2: patient(overHttp2(url, headers, ca)),
    socket: patient(overSocket(url, key, ca)),
  }
}
