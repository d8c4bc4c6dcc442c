package main

import (
	"fmt"
	"net"
)

// hosts are Git hosts on loopback that never answer, each with its own address, so that each counts as another host.
type hosts struct {
	listeners []net.Listener
	// urls are the URLs of a repository on each host, hanging hosts first.
	urls []string
}

// silentPort is a port that is not in use at these addresses.
const silentPort = 9418

// newHosts starts hosts that accept connections but never answer, and adds URLs of hosts that refuse connections.
func newHosts(hanging, refusing int) (*hosts, error) {
	h := &hosts{}
	for n := range hanging {
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address(1, n), silentPort))
		if err != nil {
			h.close()
			return nil, fmt.Errorf("listening as a host that hangs: %w", err)
		}
		h.listeners = append(h.listeners, listener)
		go hang(listener)
		h.urls = append(h.urls, url(address(1, n)))
	}
	for n := range refusing {
		h.urls = append(h.urls, url(address(2, n)))
	}
	return h, nil
}

func address(network, n int) string { return fmt.Sprintf("127.%d.%d.%d", network, n/250, n%250+1) }

func url(address string) string {
	return fmt.Sprintf("http://%s:%d/repository.git", address, silentPort)
}

// hang accepts connections and keeps them until the listener is closed.
func hang(listener net.Listener) {
	var open []net.Conn
	for {
		connection, err := listener.Accept()
		if err != nil {
			break
		}
		open = append(open, connection)
	}
	for _, connection := range open {
		_ = connection.Close()
	}
}

func (h *hosts) close() {
	for _, listener := range h.listeners {
		_ = listener.Close()
	}
}
