package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"

	"github.com/kubeop/kubeop/delivery/fetch/disk"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/delivery/few"
)

type sshSession struct {
	*remote
	client *ssh.Client
	run    *ssh.Session
	stdin  io.WriteCloser
	stdout io.Reader
	refs   *packp.AdvRefs
	watch  *transport.Watchdog
	// unwatch cancels the closing of the connection at the end of the context.
	unwatch func() bool
}

func (s *sshSession) advertised() *packp.AdvRefs { return s.refs }

// Close implements session. It closes the connection.
func (s *sshSession) Close() error {
	s.unwatch()
	return s.client.Close()
}

func (s *sshSession) upload(_ context.Context, request *packp.UploadPackRequest) (io.ReadCloser, error) {
	sent := encode(s.stdin, request)
	pack, err := s.packOf(io.NopCloser(s.watch.WatchReader(s.stdout)), request)
	if sent == nil || errors.Is(err, errRefused) {
		return pack, err // A server that refuses the request may end before it has read all of it.
	}
	if err == nil {
		_ = pack.Close()
	}
	return nil, sent
}

// send implements session.
func (s *sshSession) send(_ context.Context, request []byte) (io.ReadCloser, error) {
	_, sent := s.stdin.Write(request)
	answer := io.NopCloser(s.watch.WatchReader(s.stdout))
	if sent != nil {
		return nil, fmt.Errorf("sending to %s: %w", s.service, sent)
	}
	return answer, nil
}

func (r *remote) openSSH(ctx context.Context) (session, error) {
	address := net.JoinHostPort(r.url.Hostname(), "22")
	if r.url.Port() != "" {
		address = r.url.Host
	}
	login, err := r.login(address)
	if err != nil {
		return nil, err
	}
	watch := transport.WatchdogOf(ctx)
	greeted := watch.AwaitAnswer()
	defer greeted()
	conn, err := r.network.Dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	// crypto/ssh has no contexts: only closing the connection ends a handshake or a read that hangs.
	unwatch := context.AfterFunc(ctx, func() { _ = conn.Close() })
	handshake, channels, requests, err := ssh.NewClientConn(conn, address, &login.ClientConfig)
	if err != nil {
		unwatch()
		_ = conn.Close()
		return nil, login.failed(ctx, address, err)
	}
	greeted()
	s := &sshSession{remote: r, client: ssh.NewClient(handshake, channels, requests), watch: watch, unwatch: unwatch}
	if err := s.start(); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// start runs the service and reads the refs that it lists first.
func (s *sshSession) start() (err error) {
	begun := s.watch.AwaitAnswer()
	defer begun()
	if s.run, err = s.client.NewSession(); err != nil {
		return fmt.Errorf("opening a session: %w", err)
	}
	if s.stdin, err = s.run.StdinPipe(); err != nil {
		return fmt.Errorf("opening a session: %w", err)
	}
	if s.stdout, err = s.run.StdoutPipe(); err != nil {
		return fmt.Errorf("opening a session: %w", err)
	}
	stderr := &limit.Beginning{Max: 4 * limit.KiB}
	s.run.Stderr = stderr
	if err := s.run.Start(s.service + " " + shellQuote(s.url.Path)); err != nil {
		return fmt.Errorf("running %s: %w", s.service, err)
	}
	begun()
	if s.refs, err = s.decodeRefs(s.watch.WatchReader(s.stdout)); err == nil {
		return nil
	}
	if !errors.Is(err, packp.ErrEmptyInput) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	// There is no list: the server ended the command, and its reason is on stderr.
	ended := s.watch.AwaitAnswer()
	defer ended()
	_ = s.stdin.Close()
	var exit *ssh.ExitError
	if errors.As(s.run.Wait(), &exit) {
		return failure.New(failure.ErrNotFound, "the server does not serve this repository to the key of the Secret; it says: %s",
			few.Quote(s.auth.Redact(string(stderr.Bytes()))))
	}
	return err
}

// shellQuote quotes the path for the shell to which many SSH servers pass the command.
func shellQuote(path string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// login is an SSH configuration that records how far a handshake came, because crypto/ssh's errors do not contain that.
type login struct {
	ssh.ClientConfig
	hostKey error
	offered bool
}

func (r *remote) login(address string) (*login, error) {
	signer, err := r.auth.Signer()
	if err != nil {
		return nil, err
	}
	if signer == nil && r.auth.Password == "" {
		return nil, failure.New(failure.ErrInvalid, "an ssh URL needs a key: name in secretRef, in Git, a Secret with identity and known_hosts")
	}
	hosts, err := r.knownHosts()
	if err != nil {
		return nil, err
	}
	l := &login{}
	l.User = "git"
	if name := r.url.User.Username(); name != "" {
		l.User = name
	}
	l.HostKeyAlgorithms = hosts.HostKeyAlgorithms(address)
	l.HostKeyCallback = func(host string, from net.Addr, key ssh.PublicKey) error {
		l.hostKey = hosts.HostKeyCallback()(host, from, key)
		return l.hostKey
	}
	if signer != nil {
		l.Auth = append(l.Auth, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			l.offered = true
			return []ssh.Signer{signer}, nil
		}))
	} else {
		l.Auth = append(l.Auth, ssh.PasswordCallback(func() (string, error) {
			l.offered = true
			return r.auth.Password, nil
		}))
	}
	return l, nil
}

// knownHosts parses the host keys. The parser can only read files.
func (r *remote) knownHosts() (*knownhosts.HostKeyDB, error) {
	if len(bytes.TrimSpace(r.auth.KnownHosts)) == 0 {
		return nil, failure.New(failure.ErrInvalid, "the Secret has no known_hosts, so the server cannot be authenticated: add the output of \"ssh-keyscan %s\" as known_hosts; %s", r.url.Hostname(),
			r.auth.Write("identity", "known_hosts"))
	}
	file, err := os.CreateTemp(r.scratch, disk.Temporary)
	if err != nil {
		return nil, disk.Writing(r.scratch, err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(r.auth.KnownHosts)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, disk.Writing(r.scratch, err)
	}
	hosts, err := knownhosts.NewDB(file.Name())
	if err != nil {
		return nil, failure.New(failure.ErrInvalid, "known_hosts of the Secret cannot be read: each line is \"host type key\", as ssh-keyscan prints it; %s", r.auth.Write("identity", "known_hosts"))
	}
	return hosts, nil
}

// failed explains a handshake that did not succeed.
func (l *login) failed(ctx context.Context, address string, err error) error {
	host, _, _ := net.SplitHostPort(address)
	var network net.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case l.hostKey != nil && knownhosts.IsHostKeyChanged(l.hostKey):
		return failure.New(failure.ErrAuthentication, "the host key of %s is not the one in known_hosts: if the server's key was changed on purpose, write the output of \"ssh-keyscan %s\" there", address, host)
	case l.hostKey != nil:
		return failure.New(failure.ErrAuthentication, "the host key of %s is not in known_hosts: add the output of \"ssh-keyscan %s\" to the Secret that secretRef names in Git", address, host)
	case l.offered && !errors.Is(err, io.EOF) && !errors.As(err, &network):
		return failure.New(failure.ErrAuthentication, "%s rejected the key of the Secret: a maintainer of the repository may add its public key there as a deploy key", address)
	}
	return fmt.Errorf("connecting to %s: %w", address, err)
}
