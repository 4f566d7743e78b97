"""Let jsii run on the Node.js that came with the requirements, unless the user names another.

jsii starts Node.js when the CDK is first imported. In an app that imports the CDK before this
package, jsii has already started a Node.js.
"""

import sys

from ultrascale.node import use_node

if "jsii" not in sys.modules:
    use_node()
