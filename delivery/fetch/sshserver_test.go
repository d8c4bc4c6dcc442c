package fetch

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/kubeop/kubeop/delivery/fetch/transport"
)

// sshServer runs git-upload-pack for one key.
type sshServer struct {
	address string
	root    string
	auth    transport.Auth
	config  *ssh.ServerConfig
}

func (s *sshServer) url() string { return "ssh://git@" + s.address + "/app.git" }

func serveSSH(t *testing.T, repo *gitRepo) *sshServer {
	t.Helper()
	client, identity := newKey(t)
	host, _ := newKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &sshServer{address: listener.Addr().String(), root: repo.root}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return nil, nil
		}
		return nil, errors.New("unknown key")
	}}
	s.config.AddHostKey(host)
	s.auth = transport.Auth{
		Identity:   identity,
		KnownHosts: []byte(knownhosts.Line([]string{s.address}, host.PublicKey()) + "\n"),
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
	return s
}

func newKey(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block)
}

func (s *sshServer) serve(conn net.Conn) {
	defer conn.Close()
	server, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		go s.exec(channel, requests)
	}
}

func (s *sshServer) exec(channel ssh.Channel, requests <-chan *ssh.Request) {
	defer channel.Close()
	for request := range requests {
		if request.Type != "exec" {
			continue
		}
		_ = request.Reply(true, nil)
		var payload struct{ Command string }
		if ssh.Unmarshal(request.Payload, &payload) != nil {
			return
		}
		path := strings.Trim(strings.TrimPrefix(payload.Command, "git-upload-pack "), "'")
		cmd := exec.Command("git", "upload-pack", filepath.Join(s.root, path))
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
		// Not cmd.Stdin: the command's end would wait for the client's.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(stdin, channel)
			_ = stdin.Close()
		}()
		status := struct{ Code uint32 }{}
		if err := cmd.Run(); err != nil {
			status.Code = 128
		}
		_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(status))
		return
	}
}
