package sops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/getsops/sops/v3/keyservice"

	"github.com/kubeop/kubeop/delivery/decrypt/service"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/mask"
)

// credentialKeys are the keys of a Secret with credentials for services.
var credentialKeys = []string{service.AWS, service.GCP, service.Azure, service.Vault}

// services are the key services, with the credentials of one Secret. A service without credentials is nil and never called, because the
// library would look for credentials elsewhere.
type services struct {
	aws   *awsKMS
	gcp   *gcpKMS
	azure *azureVault
	vault *vault
	// client connects to the services, and to nothing else.
	client *http.Client
	// failed are the errors of services that did not answer. They are not called again, because that costs seconds.
	failed map[string]error
	hide   mask.Mask
}

// readServices reads credentials in the data of a Secret.
func readServices(secret string, data map[string][]byte, through http.RoundTripper) (*services, error) {
	s := &services{failed: map[string]error{}, client: &http.Client{Transport: through}}
	var secrets []string
	for _, key := range credentialKeys {
		content := data[key]
		if len(content) == 0 {
			continue
		}
		found, why := s.read(key, content)
		if why != "" {
			return nil, wrongKey(secret, key, why)
		}
		secrets = append(secrets, found...)
	}
	s.hide = mask.Of(secrets)
	return s, nil
}

// read adds the credentials in one key of the Secret. It returns their secret parts, or what is wrong with them.
func (s *services) read(key string, content []byte) (secrets []string, why string) {
	switch key {
	case service.AWS:
		s.aws, secrets, why = readAWS(content)
	case service.GCP:
		s.gcp, secrets, why = readGCP(content)
	case service.Azure:
		s.azure, secrets, why = readAzure(content, s.client)
	case service.Vault:
		s.vault, secrets, why = readVault(content)
	}
	return secrets, why
}

func (s *services) none() bool {
	return s.aws == nil && s.gcp == nil && s.azure == nil && s.vault == nil
}

// errNoCredentials is wrapped by errors that say which credentials a key needs.
var errNoCredentials = errors.New("in the Secret")

func without(key string) error { return fmt.Errorf("it takes %s %w", key, errNoCredentials) }

// serviceTime is how long a service may take for one key, including the client's retries.
const serviceTime = 10 * time.Second

// maxReason limits how much of a service's error is reported, in characters.
const maxReason = 300

// decrypt lets a service decrypt a data key. Its error is reported without the credentials.
func (s *services) decrypt(ctx context.Context, key *keyservice.Key, enc string) (plain []byte, err error) {
	at, use, err := s.use(key, enc)
	if err != nil {
		return nil, err
	}
	if before := s.failed[at]; before != nil {
		return nil, before
	}
	defer func() {
		if recover() != nil {
			plain, err = nil, errors.New("its answer cannot be read")
		}
		if err != nil {
			err = errors.New(few.Line(s.hide(err.Error()), maxReason))
			s.failed[at] = err
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, serviceTime)
	defer cancel()
	return use(ctx)
}

type decryption = func(context.Context) ([]byte, error)

// use returns which service keeps a key, by kind and host, and how it decrypts.
func (s *services) use(key *keyservice.Key, enc string) (at string, use decryption, err error) {
	switch k := key.KeyType.(type) {
	case *keyservice.Key_KmsKey:
		if s.aws == nil {
			return "", nil, without(service.AWS)
		}
		return describe(key), s.aws.decryption(k.KmsKey, enc, s.client), nil
	case *keyservice.Key_GcpKmsKey:
		if s.gcp == nil {
			return "", nil, without(service.GCP)
		}
		return describe(key), s.gcp.decryption(k.GcpKmsKey, enc, s.client), nil
	case *keyservice.Key_AzureKeyvaultKey:
		if s.azure == nil {
			return "", nil, without(service.Azure)
		}
		return describe(key), s.azure.decryption(k.AzureKeyvaultKey, enc, s.client), nil
	case *keyservice.Key_VaultKey:
		if s.vault == nil {
			return "", nil, without(service.Vault)
		}
		return describe(key), s.vault.decryption(k.VaultKey, enc, s.client), nil
	}
	return "", nil, fmt.Errorf("such keys are not supported, and no credentials for them taken %w", errNoCredentials)
}
