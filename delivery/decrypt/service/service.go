// Package service lets a process that decrypts, which can open no connection, use the services that keep keys: AWS KMS, GCP KMS, Azure
// Key Vault and HashiCorp Vault. The process sends each HTTP request to the operator (Transport), who makes it if it goes to a service for
// which the Secret has credentials (Proxy), and nowhere else.
package service

import (
	"net/http"
	"time"

	"github.com/fxamacker/cbor/v2"
)

// The keys of a Secret with credentials for services; the same as Flux's, but for VaultAddress and CA.
const (
	AWS   = "sops.aws-kms"
	GCP   = "sops.gcp-kms"
	Azure = "sops.azure-kv"
	Vault = "sops.vault-token"
	// VaultAddress is the only Vault that is sent the token, where it is set.
	VaultAddress = "sops.vault-address"
	// CA holds certificate authorities in PEM, trusted in addition to the system's.
	CA = "ca.crt"
)

// Limits of the requests for one app, and of their total time, because the process is reserved for it meanwhile.
const (
	maxRequests     = 200
	maxRequestBytes = 128 << 10
	maxAnswerBytes  = 1 << 20
	maxTime         = 10 * time.Second
)

// request is an HTTP request on its way to the operator.
type request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// response is the answer to it.
type response struct {
	Status int
	Header http.Header
	Body   []byte
}

func marshal(message any) ([]byte, error) { return cbor.Marshal(message) }

func unmarshal(text []byte, message any) error { return cbor.Unmarshal(text, message) }
