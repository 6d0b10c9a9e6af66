// kafkajs, with other packages' codecs where it leaves them to others. ../python/lines.py describes the contract.
//
// Its consumer knows groups only. What reads here without one are its own parts below that: the cluster, its brokers'
// `fetch` and the decoders.

'use strict'

const readline = require('readline')
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')
const { version } = require('kafkajs/package.json')
const lz4 = require('lz4-napi')
const SnappyCodec = require('kafkajs-snappy')
const { ZstdCodec } = require('zstd-codec')

const PATIENCE_MS = 90_000
const CODECS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const kafka = new Kafka({
  clientId: 'kafkajs',
  brokers: [process.argv[2]],
  logLevel: logLevel.NOTHING,
  retry: { retries: 30, maxRetryTime: 2000 },
})
const producers = new Map()
let admin
let cluster

const encode = bytes => (bytes == null ? null : Buffer.from(bytes).toString('base64'))
const decode = text => (text == null ? null : Buffer.from(text, 'base64'))

async function producer(idempotent) {
  if (!producers.has(idempotent)) {
    const made = kafka.producer({ idempotent, maxInFlightRequests: 1, allowAutoTopicCreation: true })
    await made.connect()
    producers.set(idempotent, made)
  }
  return producers.get(idempotent)
}

async function produce(job) {
  const messages = job.records.map(record => {
    const headers = {}
    for (const [name, value] of record.headers) (headers[name] ||= []).push(decode(value))
    return {
      partition: job.partition,
      key: decode(record.key),
      value: decode(record.value),
      timestamp: String(record.timestamp),
      headers,
    }
  })
  const sender = await producer(job.idempotent)
  const told = await sender.send({
    topic: job.topic,
    acks: job.acks,
    compression: CODECS[job.codec],
    messages,
  })
  const base = told.length ? Number(told[0].baseOffset) : -1
  return { offsets: messages.map((_, at) => (base < 0 ? -1 : base + at)) }
}

async function connectedAdmin() {
  if (!admin) {
    admin = kafka.admin()
    await admin.connect()
  }
  return admin
}

// The broker that leads, over a cluster that is connected again when the connection was lost.
async function broker(topic) {
  if (!cluster) {
    const create = Object.getOwnPropertySymbols(kafka).find(one => String(one).includes('createCluster'))
    cluster = kafka[create]({ metadataMaxAge: 300000, allowAutoTopicCreation: false })
    await cluster.connect()
  }
  await cluster.addTargetTopic(topic)
  const [{ leader }] = cluster.findTopicPartitionMetadata(topic)
  return cluster.findBroker({ nodeId: leader })
}

async function fetch(topic, partition, fetchOffset) {
  for (let attempt = 0; ; attempt++) {
    try {
      const { responses } = await (await broker(topic)).fetch({
        maxWaitTime: 500,
        minBytes: 1,
        topics: [{ topic, partitions: [{ partition, fetchOffset, maxBytes: 1048576 }] }],
      })
      return responses[0].partitions[0]
    } catch (error) {
      if (attempt === 5) throw error
      await new Promise(go => setTimeout(go, 100))
      const old = cluster
      cluster = undefined
      if (old) await old.disconnect().catch(() => {})
    }
  }
}

async function consume(job) {
  let next = job.offset
  if (job.time !== undefined) {
    const all = await (await connectedAdmin()).fetchTopicOffsetsByTimestamp(job.topic, job.time)
    next = Number(all.find(one => one.partition === job.partition).offset)
  }
  const records = []
  const deadline = Date.now() + PATIENCE_MS
  while (records.length === 0 || records[records.length - 1].offset < job.until - 1) {
    const told = await fetch(job.topic, job.partition, String(next))
    for (const message of told.messages) {
      // A batch comes whole.
      if (Number(message.offset) < next || message.isControlRecord) continue
      const headers = []
      for (const [name, values] of Object.entries(message.headers || {}))
        for (const value of [values].flat()) headers.push([name, encode(value)])
      records.push({
        offset: Number(message.offset),
        timestamp: Number(message.timestamp),
        key: encode(message.key),
        value: encode(message.value),
        headers,
      })
      next = Number(message.offset) + 1
    }
    if (Date.now() > deadline) throw new Error(`${records.length} records came`)
  }
  return { records }
}

async function ends(job) {
  const all = await (await connectedAdmin()).fetchTopicOffsets(job.topic)
  const { low, high } = all.find(one => one.partition === job.partition)
  return { first: Number(low), end: Number(high) }
}

function say(answer) {
  process.stdout.write(JSON.stringify(answer) + '\n')
}

async function main() {
  const zstd = await new Promise(go => ZstdCodec.run(go))
  CompressionCodecs[CompressionTypes.Snappy] = SnappyCodec
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: encoder => lz4.compressFrame(encoder.buffer),
    decompress: buffer => lz4.decompressFrame(buffer),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async encoder => Buffer.from(new zstd.Simple().compress(encoder.buffer)),
    decompress: async buffer => Buffer.from(new zstd.Streaming().decompress(buffer)),
  })
  say({ client: 'kafkajs', version, codecs: Object.keys(CODECS), idempotent: true, cannot: ['null header'] })
  const jobs = { produce, consume, ends }
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const job = JSON.parse(line)
    try {
      say(await jobs[job.do](job))
    } catch (error) {
      say({ error: String((error && error.stack) || error) })
    }
  }
  process.exit(0)
}

main()
