// Package ports reserves free ports for components.
package ports

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reserve returns n free TCP ports on loopback. This process keeps each port bound, without listening, until it ends. The components listen on it
// with SO_REUSEPORT. Other processes that request a free port get another one. Otherwise, clusters that start in parallel could take each
// other's ports between choosing and listening.
func Reserve(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		port, err := bind()
		if err != nil {
			return nil, fmt.Errorf("reserving a port: %w", err)
		}
		ports[i] = port
	}
	return ports, nil
}

// bind returns a free port. It does not close its socket, because that keeps the port reserved.
func bind() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, err
	}
	unix.CloseOnExec(fd)
	if err := shareable(fd); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return address.(*unix.SockaddrInet4).Port, nil
}

// Listen listens on an address. Its port may be one that this process has reserved.
func Listen(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) error {
		var failed error
		if err := conn.Control(func(fd uintptr) { failed = shareable(int(fd)) }); err != nil {
			return err
		}
		return failed
	}}
	listener, err := config.Listen(context.Background(), "tcp4", address)
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", address, err)
	}
	return listener, nil
}

func shareable(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}
