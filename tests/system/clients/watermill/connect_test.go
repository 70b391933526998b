// Watermill's pub/sub of SNS and of SQS under the tests that Watermill has for every pub/sub of its own.
package watermill

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ThreeDotsLabs/watermill-aws/sns"
	"github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	transport "github.com/aws/smithy-go/endpoints"
)

const (
	account = "000000000000"
	region  = "us-west-2"
	// How soon a message comes again that was refused or never acknowledged: the tests wait for that.
	visibility = "1"
)

var asked atomic.Uint32

// Another member with every call, so that what is published by one is received from another.
func nextEndpoint() transport.Endpoint {
	all := strings.Split(os.Getenv("ENDPOINTS"), ",")
	address, err := url.Parse(all[int(asked.Add(1))%len(all)])
	if err != nil || address.Host == "" {
		panic(fmt.Sprintf("ENDPOINTS has to list URLs: %q", all))
	}
	return transport.Endpoint{URI: *address}
}

func queuesAt() []func(*awssqs.Options) {
	resolver := sqs.OverrideEndpointResolver{Endpoint: nextEndpoint()}
	return []func(*awssqs.Options){awssqs.WithEndpointResolverV2(resolver)}
}

func topicsAt() []func(*awssns.Options) {
	resolver := sns.OverrideEndpointResolver{Endpoint: nextEndpoint()}
	return []func(*awssns.Options){awssns.WithEndpointResolverV2(resolver)}
}

func settings() aws.Config {
	return aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")}
}

// The last line is what the run of the clients shows.
func TestMain(m *testing.M) {
	status := m.Run()
	if status == 0 {
		fmt.Println("watermill: its universal tests of SNS and of SQS")
	}
	os.Exit(status)
}
