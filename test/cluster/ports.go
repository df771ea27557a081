package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

const (
	// Below 32768, where Linux begins to pick ports for outgoing connections:
	// a client that dials the stopped API server could otherwise be given the
	// server's own port, connect to itself and keep the server from starting.
	firstPort  = 20000
	portBlocks = 1200
	blockSize  = 10
)

// portBlock is ten consecutive ports. The first is held open for as long as
// the cluster lives: that is the reservation of the others, visible to every
// process on the machine and gone with this one, however it ends.
type portBlock struct {
	base int
	lock net.Listener
}

func reservePorts() (portBlock, error) {
	for range 50 {
		base := firstPort + blockSize*rand.IntN(portBlocks)
		lock, err := listen(base)
		if err != nil {
			continue // another cluster's
		}
		b := portBlock{base: base, lock: lock}
		if b.free() {
			return b, nil
		}
		if err := b.release(); err != nil {
			return portBlock{}, err
		}
	}
	return portBlock{}, fmt.Errorf("no %d free ports in a row between %d and %d on loopback", blockSize, firstPort, firstPort+blockSize*portBlocks)
}

// free tells whether nobody listens on the ports behind the first.
func (b portBlock) free() bool {
	for port := b.base + 1; port < b.base+blockSize; port++ {
		l, err := listen(port)
		if err != nil {
			return false
		}
		if err := l.Close(); err != nil {
			return false
		}
	}
	return true
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

func (b portBlock) release() error {
	if b.lock == nil {
		return nil
	}
	if err := b.lock.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (b portBlock) etcd() int              { return b.base + 1 }
func (b portBlock) etcdPeer() int          { return b.base + 2 }
func (b portBlock) apiServer() int         { return b.base + 3 }
func (b portBlock) controllerManager() int { return b.base + 4 }
func (b portBlock) scheduler() int         { return b.base + 5 }
func (b portBlock) kwok() int              { return b.base + 6 }
