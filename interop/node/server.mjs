// usage: node server.mjs EXPRESS_PORT FASTIFY_PORT
// Mounts published limiters, 20 requests per 2 s each; limits nothing itself.
import express from 'express'
import Fastify from 'fastify'
import { rateLimit } from 'express-rate-limit'
import fastifyLimit from '@fastify/rate-limit'
import { RateLimiterMemory } from 'rate-limiter-flexible'

const ok = (_req, res) => res.json({ ok: true })
const app = express()
for (const standardHeaders of ['draft-6', 'draft-7', 'draft-8']) {
  app.get('/' + standardHeaders, rateLimit({ windowMs: 2000, limit: 20, standardHeaders, legacyHeaders: false }), ok)
}
app.get('/legacy', rateLimit({ windowMs: 2000, limit: 20, standardHeaders: false, legacyHeaders: true }), ok)
app.get('/silent', rateLimit({ windowMs: 2000, limit: 20, standardHeaders: false, legacyHeaders: false }), ok)

const flexible = (options) => {
  const limiter = new RateLimiterMemory({ points: 20, duration: 2, ...options })
  const tell = (res, state) => options.silent || res.set({
    'Retry-After': state.msBeforeNext / 1000,
    'X-RateLimit-Limit': 20,
    'X-RateLimit-Remaining': state.remainingPoints,
    'X-RateLimit-Reset': Math.ceil((Date.now() + state.msBeforeNext) / 1000)
  })
  return (req, res, next) => limiter.consume(req.ip).then(
    (state) => { tell(res, state); next() },
    (state) => { tell(res, state); res.status(429).send('Too Many Requests') })
}
app.get('/flexible', flexible({}), ok)
app.get('/block', flexible({ blockDuration: 5 }), ok)
app.get('/block-silent', flexible({ blockDuration: 5, silent: true }), ok)
app.listen(Number(process.argv[2]), '127.0.0.1')

const fastify = Fastify()
const mount = (path, options) => fastify.register(async (scope) => {
  await scope.register(fastifyLimit, { max: 20, timeWindow: 2000, ...options })
  scope.get(path, async () => ({ ok: true }))
})
await mount('/legacy', {})
await mount('/ietf', { enableDraftSpec: true })
// Every refused request starts the window anew.
await mount('/continue', { continueExceeding: true })
const none = { 'x-ratelimit-limit': false, 'x-ratelimit-remaining': false, 'x-ratelimit-reset': false, 'retry-after': false }
await mount('/continue-silent', { continueExceeding: true, addHeaders: none, addHeadersOnExceeding: none })
await mount('/exponential', { exponentialBackoff: true }) // and says twice the time each time
await fastify.listen({ port: Number(process.argv[3]), host: '127.0.0.1' })
