package hook

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// places limits what is in progress, for each key and in total. Above a limit the oldest of the key, or of all, is aborted. So slow work
// does not block new work, and a caller with many places loses them to others. Safe for concurrent use.
type places[K comparable] struct {
	each, all int

	mu sync.Mutex
	// taken are the places in use, the oldest first. of counts them by key.
	taken list.List
	of    map[K]int
}

// place is a place in use.
type place[K comparable] struct {
	key  K
	gone atomic.Bool
	// giveWay aborts the work of the place. It must not block.
	giveWay func()
}

func newPlaces[K comparable](each, all int) *places[K] {
	return &places[K]{each: each, all: all, of: map[K]int{}}
}

// gaveWay reports whether the place was taken away.
func (p *place[K]) gaveWay() bool { return p.gone.Load() }

// take takes a place for the key, and aborts the oldest if there is none. leave returns it, and may be called twice.
func (p *places[K]) take(key K, giveWay func()) (taken *place[K], leave func()) {
	taken = &place[K]{key: key, giveWay: giveWay}
	p.mu.Lock()
	var over *place[K]
	switch {
	case p.of[key] >= p.each:
		over = p.oldest(&key)
	case p.taken.Len() >= p.all:
		over = p.oldest(nil)
	}
	at := p.taken.PushBack(taken)
	p.of[key]++
	p.mu.Unlock()
	if over != nil {
		over.giveWay()
	}
	return taken, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !taken.gone.Load() {
			p.remove(at)
		}
	}
}

// oldest takes away the oldest place of a key or, for nil, of all.
func (p *places[K]) oldest(key *K) *place[K] {
	for at := p.taken.Front(); at != nil; at = at.Next() {
		if held := at.Value.(*place[K]); key == nil || held.key == *key {
			p.remove(at)
			return held
		}
	}
	return nil
}

func (p *places[K]) remove(at *list.Element) {
	held := p.taken.Remove(at).(*place[K])
	held.gone.Store(true)
	if p.of[held.key]--; p.of[held.key] == 0 {
		delete(p.of, held.key)
	}
}

// listener limits connections by their remote address.
type listener struct {
	net.Listener
	places *places[netip.Prefix]
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	_, leave := l.places.take(networkOf(conn.RemoteAddr()), func() {
		crowdedOut.Inc()
		_ = conn.Close() // Its reader and writer get an error.
	})
	return &connection{Conn: conn, leave: leave}, nil
}

// connection is a connection with a place.
type connection struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.leave()
	return c.Conn.Close()
}

// networkOf returns what counts as one address. For IPv6 it is the /64, because a host or a site has all addresses of it.
func networkOf(remote net.Addr) netip.Prefix {
	at, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := at.Addr().Unmap(), 64
	if ip.Is4() {
		bits = 32
	}
	network, _ := ip.WithZone("").Prefix(bits) // It fails for more bits than there are.
	return network
}
