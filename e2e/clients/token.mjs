// A JSON Web Token, signed by Node's own cryptography: with Ed25519 if the file is a private key in PEM,
// or else with HMAC and the 32 bytes whose digits it has.
//
// usage: node token.mjs KEY SECONDS CLAIMS
import crypto from 'node:crypto'
import fs from 'node:fs'

const [file, seconds, claims] = process.argv.slice(2)
const key = fs.readFileSync(file, 'utf8').trim()
const isPrivate = key.startsWith('-----')
const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url')
const exp = Math.floor(Date.now() / 1000) + Number(seconds)
const message = `${part({ alg: isPrivate ? 'EdDSA' : 'HS256', typ: 'JWT' })}.${part({ exp, ...JSON.parse(claims) })}`
const signature = isPrivate
  ? crypto.sign(null, Buffer.from(message), key)
  : crypto.createHmac('sha256', Buffer.from(key, 'hex')).update(message).digest()
console.log(`${message}.${signature.toString('base64url')}`)
