package executors

import "net/http"

// unreadBytes is what the server of a tenant may send of an answer before it is read. It limits the
// throughput of one answer to so much each round trip (a guess).
const unreadBytes = 128 << 10

// HTTP2 bounds what is kept of answers that nobody reads yet: Go's client takes 4 MiB of each, and
// those who wait for a place to read theirs do not read.
func HTTP2() *http.HTTP2Config {
	return &http.HTTP2Config{MaxReceiveBufferPerStream: unreadBytes}
}
