package sources

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
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHServer runs git-upload-pack and git-receive-pack for one key.
type SSHServer struct {
	Address string
	root    string
	// Identity is the private key that may read and write. KnownHosts is the known_hosts file with the server's key.
	Identity, KnownHosts []byte
	Config               *ssh.ServerConfig
	// Exec runs a command instead of Git, and returns its exit status. Nil: Git runs.
	Exec func(channel ssh.Channel, command string) uint32

	mu sync.Mutex
}

// Set changes Config or Exec, for connections that begin afterwards.
func (s *SSHServer) Set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// RepoURL returns the URL of the repository.
func (s *SSHServer) RepoURL() string { return "ssh://git@" + s.Address + "/app.git" }

// ServeSSH serves a repository over SSH.
func ServeSSH(t *testing.T, repo *GitRepo) *SSHServer {
	t.Helper()
	client, identity := NewSSHKey(t)
	host, _ := NewSSHKey(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s := &SSHServer{Address: listener.Addr().String(), root: repo.Root}
	s.Config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return nil, nil
		}
		return nil, errors.New("unknown key")
	}}
	s.Config.AddHostKey(host)
	s.Identity, s.KnownHosts = identity, []byte(knownhosts.Line([]string{s.Address}, host.PublicKey())+"\n")
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

// NewSSHKey returns a new key, and its private key in OpenSSH's format.
func NewSSHKey(t *testing.T) (ssh.Signer, []byte) {
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

func (s *SSHServer) serve(conn net.Conn) {
	defer conn.Close()
	s.mu.Lock()
	config, run := *s.Config, s.Exec
	s.mu.Unlock()
	server, channels, requests, err := ssh.NewServerConn(conn, &config)
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
		go s.exec(channel, requests, run)
	}
}

func (s *SSHServer) exec(channel ssh.Channel, requests <-chan *ssh.Request, run func(ssh.Channel, string) uint32) {
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
		if run != nil {
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{run(channel, payload.Command)}))
			return
		}
		service, path, _ := strings.Cut(strings.TrimPrefix(payload.Command, "git-"), " ")
		if service != "upload-pack" && service != "receive-pack" {
			return
		}
		cmd := exec.Command("git", service, filepath.Join(s.root, strings.Trim(path, "'")))
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
		// Not cmd.Stdin, because cmd.Wait would wait for the end of the client's input.
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
